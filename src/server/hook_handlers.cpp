// Trying hooks: against samples, and against jobs that have failed.
#include <fmt/format.h>

#include <utility>

#include "base/json_fields.h"
#include "model/limits.h"
#include "server/handlers.h"
#include "server/hook_json.h"
#include "server/hook_samples.h"

namespace reprise::server {
namespace {

constexpr std::uint64_t kMaxReplayed = 10'000;

// A source, or null for the queue's own. Nothing: the field is not there.
std::optional<std::optional<std::string>> read_source(JsonFields& fields, HookKind hook) {
  const std::string_view name = hook_name(hook);
  const Json* json = fields.peek(name);
  if (json == nullptr) return std::nullopt;
  if (json->is_null()) return std::optional<std::string>();
  std::string source;
  if (fields.read(name, source) && source.empty()) {
    fields.fail(name, "is empty (null for the queue's)", Errc::invalid_script);
  }
  if (source.size() > kMaxScriptBytes) {
    fields.fail(name,
                fmt::format("the script has {} bytes; at most {} are taken", source.size(),
                            kMaxScriptBytes),
                Errc::script_too_large);
  }
  return std::optional(std::move(source));
}

}  // namespace

Status test_hook(Api& api, Request& request, const Exchange& exchange) {
  auto queue = request.queue_name();
  if (!queue) return queue.error();
  REPRISE_TRY(request.query.finish());
  const auto json = request.json_body();
  if (!json) return json.error();
  JsonFields fields(*json);
  auto on_failure = read_source(fields, HookKind::on_failure);
  auto on_enqueue = read_source(fields, HookKind::on_enqueue);
  const Json* samples = fields.peek("samples");
  REPRISE_TRY(fields.finish());
  if (on_failure.has_value() == on_enqueue.has_value()) {
    return Error{Errc::invalid_request,
                 on_failure ? "on_enqueue: goes without on_failure: give one of the two"
                            : "give on_failure or on_enqueue: a source, or null for the queue's"};
  }
  if (samples == nullptr) return Error{Errc::invalid_request, "samples: is missing"};
  const HookKind hook = on_failure ? HookKind::on_failure : HookKind::on_enqueue;
  auto messages = read_samples(*samples, hook, api.broker.limits());
  if (!messages) return messages.error();
  // The reply tells attributes as the samples would have them.
  auto told = std::make_shared<const std::vector<HookMessage>>(*messages);
  api.broker.try_hook({.queue = std::move(*queue),
                       .hook = hook,
                       .source = on_failure ? *std::move(on_failure) : *std::move(on_enqueue),
                       .messages = *std::move(messages)},
                      exchange.then<HookTrialReply>([hook, told](const HookTrialReply& reply) {
                        return hook_trial_response(hook, *told, reply);
                      }));
  return ok();
}

Status replay_hook(Api& api, Request& request, const Exchange& exchange) {
  auto queue = request.queue_name();
  if (!queue) return queue.error();
  REPRISE_TRY(request.query.finish());
  const auto json = request.json_body();
  if (!json) return json.error();
  HookReplayRequest replay{.queue = std::move(*queue)};
  JsonFields fields(*json);
  if (auto source = read_source(fields, HookKind::on_failure)) replay.source = *std::move(source);
  fields.read("limit", replay.limit);
  if (replay.limit < 1 || replay.limit > kMaxReplayed) {
    fields.fail("limit", fmt::format("must be between 1 and {}", kMaxReplayed));
  }
  const Json* filter = fields.peek("filter");
  REPRISE_TRY(fields.finish());
  if (filter != nullptr && !filter->is_null()) {
    auto read = filter_from_json(*filter);
    if (!read) return read.error();
    replay.filter = *std::move(read);
  }
  if (!replay.filter.status) replay.filter.status = JobStatus::dead;
  api.broker.replay_hook(std::move(replay), exchange.then<HookReplayReply>(hook_replay_response));
  return ok();
}

}  // namespace reprise::server
