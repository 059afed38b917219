#include <array>
#include <chrono>
#include <utility>

#include "embedded/openapi.h"
#include "reprise_version.h"
#include "server/handlers.h"
#include "server/job_json.h"
#include "server/metrics_text.h"
#include "server/operation_json.h"

namespace reprise::server {
namespace {

constexpr std::string_view kWelcome =
    "Reprise: a durable work queue.\n"
    "\n"
    "GET /v1/queues     queues and their stats\n"
    "GET /v1/status     the server\n"
    "GET /openapi.json  the API\n"
    "GET /metrics       numbers for Prometheus\n";

// For the routes that take nothing at all.
Status expect_nothing(Request& request) {
  REPRISE_TRY(request.query.finish());
  return request.expect_no_fields();
}

Response text_response(std::string_view content_type, std::string body) {
  Response response;
  response.content_type = content_type;
  response.body = std::move(body);
  return response;
}

Response word_response(std::string_view status) {
  JsonWriter out;
  out.begin_object().key("status").value(status).end_object();
  return json_response(std::move(out));
}

void write_job_counts(JsonWriter& out, const std::vector<QueueStats>& queues) {
  std::array<std::uint64_t, kJobStatusCount> counts{};
  for (const QueueStats& stats : queues) {
    for (std::size_t i = 0; i < kJobStatusCount; ++i) counts[i] += stats.by_status[i];
  }
  out.key("jobs").begin_object();
  for (std::size_t i = 0; i < kJobStatusCount; ++i) {
    const auto status = static_cast<JobStatus>(i);
    if (status != JobStatus::completed) out.key(status_name(status)).value(counts[i]);
  }
  out.end_object();
}

struct StatusInput {
  std::vector<QueueStats> queues;
  std::vector<Operation> operations;
};

WebhookStats webhook_stats(const Api& api) {
  return api.webhook_stats ? api.webhook_stats() : WebhookStats{};
}

BeanstalkStats beanstalk_stats(const Api& api) {
  return api.beanstalk_stats ? api.beanstalk_stats() : BeanstalkStats{};
}

worker::WorkerMetrics worker_metrics(const Api& api) {
  return api.workers != nullptr ? api.workers->metrics() : worker::WorkerMetrics{};
}

// Null where none are run.
void write_workers(JsonWriter& out, const Api& api) {
  out.key("workers");
  if (api.workers == nullptr) {
    out.null();
    return;
  }
  const worker::WorkerMetrics metrics = api.workers->metrics();
  out.begin_object().key("projects").value(metrics.projects);
  out.key("running").value(metrics.workers_running);
  out.key("active").value(metrics.active).end_object();
}

struct QueueNumbers {
  std::vector<QueueStats> queues;
  std::vector<ThrottleStats> throttles;
};

Response metrics_response(const Api& api, const QueueNumbers& numbers) {
  return text_response("text/plain; version=0.0.4; charset=utf-8",
                       metrics_text({.queues = numbers.queues,
                                     .throttles = numbers.throttles,
                                     .broker = api.broker.metrics(),
                                     .event_subscribers = api.broker.events().subscribers(),
                                     .server = api.stats,
                                     .process = read_process_numbers(),
                                     .webhooks = webhook_stats(api),
                                     .workers = worker_metrics(api),
                                     .beanstalk = beanstalk_stats(api)}));
}

Response status_response(const Api& api, const StatusInput& input) {
  const std::vector<QueueStats>& queues = input.queues;
  const BrokerMetrics metrics = api.broker.metrics();
  const std::chrono::duration<double> uptime = api.broker.now() - api.started_at;
  std::uint64_t waiting_claims = 0;
  for (const QueueStats& stats : queues) waiting_claims += stats.waiting_claims;
  JsonWriter out;
  out.begin_object();
  out.key("version").value(kVersion);
  out.key("started_at").value(format_timestamp(api.started_at));
  out.key("uptime").value(uptime.count());
  out.key("durability").value(metrics.durability);
  out.key("storage").value(metrics.storage_kind);
  out.key("data_bytes").value(metrics.storage_bytes);
  out.key("disk_free_bytes").value(metrics.free_disk_bytes);
  out.key("disk_low").value(metrics.disk_low);
  out.key("queues").value(queues.size());
  write_job_counts(out, queues);
  out.key("waiting_claims").value(waiting_claims);
  out.key("connections").value(api.stats.connections.load());
  out.key("operations").begin_array();
  for (const Operation& operation : input.operations) {
    if (operation.state == OperationState::running) write_operation(out, operation);
  }
  out.end_array();
  out.key("webhooks").begin_object();
  out.key("pending").value(webhook_stats(api).pending).end_object();
  write_workers(out, api);
  out.end_object();
  return json_response(std::move(out));
}

}  // namespace

Status show_status(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_nothing(request));
  auto done = exchange.then<StatusInput>(
      [&api](const StatusInput& input) { return status_response(api, input); });
  api.broker.list_operations(
      [&api, done = std::move(done)](Result<std::vector<Operation>> operations) mutable {
        if (!operations) return done(operations.error());
        api.broker.list_queues("", [done = std::move(done), operations = *std::move(operations)](
                                       Result<std::vector<QueueStats>> queues) mutable {
          if (!queues) return done(queues.error());
          done(StatusInput{*std::move(queues), std::move(operations)});
        });
      });
  return ok();
}

Status show_health(Api&, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_nothing(request));
  exchange.reply(word_response("ok"));
  return ok();
}

Status show_readiness(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_nothing(request));
  if (api.stats.shutting_down) return Error{Errc::shutting_down, "the server is stopping"};
  if (api.broker.disk_low()) {
    return Error{Errc::disk_full, "free disk space is below the reserve; pushes are refused"};
  }
  exchange.reply(word_response("ready"));
  return ok();
}

Status show_metrics(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_nothing(request));
  auto done = exchange.then<QueueNumbers>(
      [&api](const QueueNumbers& numbers) { return metrics_response(api, numbers); });
  api.broker.list_throttles(
      "", [&api, done = std::move(done)](Result<std::vector<ThrottleStats>> throttles) mutable {
        if (!throttles) return done(throttles.error());
        api.broker.list_queues("", [done = std::move(done), throttles = *std::move(throttles)](
                                       Result<std::vector<QueueStats>> queues) mutable {
          if (!queues) return done(queues.error());
          done(QueueNumbers{*std::move(queues), std::move(throttles)});
        });
      });
  return ok();
}

Status show_openapi(Api&, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_nothing(request));
  exchange.reply(text_response("application/json", std::string(embedded::openapi)));
  return ok();
}

Status show_welcome(Api&, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_nothing(request));
  exchange.reply(text_response("text/plain; charset=utf-8", std::string(kWelcome)));
  return ok();
}

}  // namespace reprise::server
