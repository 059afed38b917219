#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "model/queue_config_json.h"
#include "server/handlers.h"
#include "server/job_json.h"

namespace reprise::server {
namespace {

constexpr std::string_view kAllNamespaces = "*";

Response queue_response(const QueueStats& stats) {
  JsonWriter out;
  write_queue(out, stats);
  return json_response(std::move(out));
}

Response put_response(const PutQueueReply& reply) {
  Response response = queue_response(reply.stats);
  if (reply.created) response.http_status = 201;
  return response;
}

Response list_response(const std::vector<QueueStats>& queues) {
  JsonWriter out;
  out.begin_object().key("queues").begin_array();
  for (const QueueStats& stats : queues) write_queue(out, stats);
  out.end_array().end_object();
  return json_response(std::move(out));
}

Response deleted_response(const QueueStats& last) {
  // `completed` is a total, not jobs that were there to delete.
  const auto completed = last.by_status[static_cast<std::size_t>(JobStatus::completed)];
  const auto all = std::accumulate(last.by_status.begin(), last.by_status.end(), std::uint64_t{0});
  JsonWriter out;
  out.begin_object().key("deleted").value(true);
  out.key("name").value(last.queue.name.name).key("namespace").value(last.queue.name.ns);
  out.key("jobs").value(all - completed).end_object();
  return json_response(std::move(out));
}

// The queue a request names, for a route that takes nothing else.
Result<QueueName> only_queue_name(Request& request) {
  auto name = request.queue_name();
  if (!name) return name;
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  return name;
}

Status set_paused(Api& api, Request& request, const Exchange& exchange, bool paused) {
  auto name = only_queue_name(request);
  if (!name) return name.error();
  api.broker.pause_queue(std::move(*name), paused, exchange.then<QueueStats>(queue_response));
  return ok();
}

}  // namespace

Status list_queues(Api& api, Request& request, const Exchange& exchange) {
  std::string ns = request.query.take("namespace").value_or(std::string(kDefaultNamespace));
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  if (ns == kAllNamespaces) {
    ns.clear();
  } else {
    REPRISE_TRY(check_name("namespace", ns));
  }
  api.broker.list_queues(std::move(ns), exchange.then<std::vector<QueueStats>>(list_response));
  return ok();
}

Status put_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  PutQueueCommand command{.queue = std::move(*name)};
  if (const auto condition = request.head.if_none_match) {
    if (*condition != "*") {
      return Error{Errc::invalid_field, "If-None-Match: only * is understood here"};
    }
    command.only_if_absent = true;
  }
  const auto json = request.json_body();
  if (!json) return json.error();
  REPRISE_TRY(apply_config_json(command.config, *json));
  api.broker.put_queue(std::move(command), exchange.then<PutQueueReply>(put_response));
  return ok();
}

Status get_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = only_queue_name(request);
  if (!name) return name.error();
  api.broker.queue_stats(std::move(*name), exchange.then<QueueStats>(queue_response));
  return ok();
}

Status patch_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  auto json = request.json_body();
  if (!json) return json.error();
  api.broker.edit_queue(
      std::move(*name),
      [changes = std::move(*json)](QueueConfig& config) {
        return apply_config_json(config, changes);
      },
      exchange.then<QueueStats>(queue_response));
  return ok();
}

Status delete_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = only_queue_name(request);
  if (!name) return name.error();
  api.broker.delete_queue(std::move(*name), request.caller,
                          exchange.then<QueueStats>(deleted_response));
  return ok();
}

Status pause_queue(Api& api, Request& request, const Exchange& exchange) {
  return set_paused(api, request, exchange, true);
}

Status resume_queue(Api& api, Request& request, const Exchange& exchange) {
  return set_paused(api, request, exchange, false);
}

}  // namespace reprise::server
