#include <utility>

#include "server/handlers.h"
#include "server/job_json.h"
#include "server/push_body.h"

namespace reprise::server {

Status push_jobs(Api& api, Request& request, const Exchange& exchange) {
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(expect_stored(api, *name));
  auto body = parse_push_body(request.body, api.broker.limits());
  if (!body) return body.error();
  api.broker.push(
      {.queue = std::move(*name), .create = body->create, .jobs = std::move(body->jobs)},
      exchange.then<PushReply>(push_response));
  return ok();
}

}  // namespace reprise::server
