#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/queue_config_json.h"
#include "server/handlers.h"
#include "server/job_json.h"
#include "server/worker_json.h"

namespace reprise::server {
namespace {

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

struct AllQueues {
  std::vector<QueueStats> stored;
  std::vector<worker::ExternalQueueView> external;
};

Response list_response(const AllQueues& queues) {
  JsonWriter out;
  out.begin_object().key("queues").begin_array();
  for (const QueueStats& stats : queues.stored) write_queue(out, stats);
  out.end_array().key("external").begin_array();
  for (const worker::ExternalQueueView& queue : queues.external) write_external_queue(out, queue);
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

void show_external_queue(Api& api, const QueueName& name, const Exchange& exchange) {
  using Views = std::vector<worker::ExternalQueueView>;
  api.workers->list_external(name.ns, exchange.then<Views>([name](const Views& queues) {
    const auto found = std::ranges::find(queues, name, &worker::ExternalQueueView::queue);
    if (found != queues.end()) return external_queue_response(*found);
    return error_response({Errc::queue_not_found, fmt::format("no queue '{}'", name.name)});
  }));
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
  REPRISE_TRY(expect_stored(api, *name));
  api.broker.pause_queue(std::move(*name), paused, exchange.then<QueueStats>(queue_response));
  return ok();
}

}  // namespace

Status list_queues(Api& api, Request& request, const Exchange& exchange) {
  auto ns = request.namespace_or_all();
  if (!ns) return ns.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.broker.list_queues(
      *ns, [workers = api.workers, ns = *ns, done = exchange.then<AllQueues>(list_response)](
               Result<std::vector<QueueStats>> stored) mutable {
        if (!stored) return done(stored.error());
        AllQueues queues{.stored = std::move(*stored)};
        if (workers == nullptr) return done(std::move(queues));
        workers->list_external(
            ns, [queues = std::move(queues), done = std::move(done)](
                    Result<std::vector<worker::ExternalQueueView>> external) mutable {
              if (!external) return done(external.error());
              queues.external = std::move(*external);
              done(std::move(queues));
            });
      });
  return ok();
}

Status put_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(expect_stored(api, *name));
  PutQueueCommand command{.queue = std::move(*name)};
  if (const auto condition = request.head.if_none_match) {
    if (*condition != "*") {
      return Error{Errc::invalid_field, "If-None-Match: only * is understood here"};
    }
    command.only_if_absent = true;
  }
  const auto json = request.json_body();
  if (!json) return json.error();
  REPRISE_TRY(apply_config_json(command.config, *json, request.body));
  api.broker.put_queue(std::move(command), exchange.then<PutQueueReply>(put_response));
  return ok();
}

Status get_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = only_queue_name(request);
  if (!name) return name.error();
  if (api.workers != nullptr && api.workers->is_external(*name)) {
    show_external_queue(api, *name, exchange);
    return ok();
  }
  api.broker.queue_stats(std::move(*name), exchange.then<QueueStats>(queue_response));
  return ok();
}

Status patch_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = request.queue_name();
  if (!name) return name.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(expect_stored(api, *name));
  auto json = request.json_body();
  if (!json) return json.error();
  api.broker.edit_queue(
      std::move(*name),
      [changes = std::move(*json), text = std::string(request.body)](QueueConfig& config) {
        return apply_config_json(config, changes, text);
      },
      exchange.then<QueueStats>(queue_response));
  return ok();
}

Status delete_queue(Api& api, Request& request, const Exchange& exchange) {
  auto name = only_queue_name(request);
  if (!name) return name.error();
  REPRISE_TRY(expect_stored(api, *name));
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
