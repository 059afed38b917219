#include "server/hook_json.h"

#include <chrono>

#include "model/job_fields_json.h"

namespace reprise::server {
namespace {

void write_hook(JsonWriter& out, const HookStats& hook) {
  const bool is_open = hook.breaker == BreakerState::open;
  const bool has_failed = !hook.last_error.empty();
  out.begin_object();
  out.key("version").value(hook.version);
  out.key("breaker").value(breaker_state_name(hook.breaker));
  write_time_or_null(out, "open_until", hook.open_until, is_open);
  out.key("failures_in_a_row").value(hook.failures_in_a_row);
  out.key("opened").value(hook.opened);
  out.key("in_flight").value(hook.in_flight);
  out.key("succeeded").value(hook.succeeded);
  out.key("remembered").value(hook.remembered);
  out.key("failed").begin_object();
  for (std::size_t fault = 0; fault < kHookFaultCount; ++fault) {
    out.key(hook_fault_name(static_cast<HookFault>(fault))).value(hook.failed[fault]);
  }
  out.end_object();
  write_text_or_null(out, "last_error", hook.last_error);
  write_time_or_null(out, "last_error_at", hook.last_error_at, has_failed);
  out.end_object();
}

// "status" and what follows from it.
void write_outcome(JsonWriter& out, const HookOutcome& outcome, const JobRecord& job) {
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) {
    out.key("status").value("hook_error");
    out.key("fault").value(hook_fault_name(failure->fault));
    out.key("message").value(failure->message);
    return;
  }
  out.key("status").value("decided");
  if (const auto* verdict = std::get_if<FailureVerdict>(&outcome)) {
    out.key("action").value(verdict->retry ? "retry" : "dlq");
    if (verdict->retry) {
      using std::chrono::milliseconds;
      out.key("delay_ms").value(std::chrono::duration_cast<milliseconds>(verdict->delay).count());
    } else {
      out.key("reason").value(verdict->reason.empty() ? death_reason_name(DeathReason::hook)
                                                      : std::string_view(verdict->reason));
    }
    return;
  }
  const auto& verdict = std::get<EnqueueVerdict>(outcome);
  if (verdict.reject) {
    out.key("reject").value(*verdict.reject);
  } else {
    Scheduling scheduling = job.scheduling;
    apply_verdict(scheduling, verdict);
    write_scheduling(out, scheduling);
  }
}

void write_fate(JsonWriter& out, const JobView& job) {
  const bool is_dead = job.status == JobStatus::dead && job.state != nullptr;
  out.key("was").begin_object();
  out.key("status").value(status_name(job.status));
  write_text_or_null(out, "reason", is_dead ? death_reason_text(*job.state) : std::string_view());
  write_text_or_null(out, "decided_by", is_dead ? decided_by_text(*job.state) : std::string());
  out.end_object();
}

// Which word of the summary an outcome counts for.
std::string_view summary_word(const HookOutcome& outcome) {
  const auto* verdict = std::get_if<FailureVerdict>(&outcome);
  if (verdict == nullptr) return "hook_error";
  return verdict->retry ? "retry" : "dlq";
}

}  // namespace

void write_hooks(JsonWriter& out, const QueueStats& stats) {
  out.key("hooks").begin_object();
  for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
    if (!stats.hooks[kind]) continue;
    out.key(hook_name(static_cast<HookKind>(kind)));
    write_hook(out, *stats.hooks[kind]);
  }
  out.end_object();
}

Response hook_trial_response(HookKind hook, const std::vector<HookMessage>& samples,
                             const HookTrialReply& reply) {
  JsonWriter out;
  out.begin_object();
  out.key("hook").value(hook_name(hook)).key("version").value(reply.version);
  out.key("results").begin_array();
  for (std::size_t i = 0; i < reply.items.size(); ++i) {
    out.begin_object().key("index").value(i);
    write_outcome(out, reply.items[i].outcome, *samples[i].job);
    out.key("log").begin_array();
    for (const std::string& line : reply.items[i].log) out.value(line);
    out.end_array().end_object();
  }
  out.end_array().end_object();
  return json_response(std::move(out));
}

Response hook_replay_response(const HookReplayReply& reply) {
  JsonWriter out;
  out.begin_object();
  out.key("hook").value(hook_name(HookKind::on_failure)).key("version").value(reply.version);
  out.key("examined").value(reply.items.size()).key("unreadable").value(reply.unreadable);
  out.key("truncated").value(reply.truncated);
  out.key("summary").begin_object();
  for (const std::string_view word : {"retry", "dlq", "hook_error"}) {
    std::uint64_t count = 0;
    for (const auto& item : reply.items) count += summary_word(item.outcome) == word ? 1 : 0;
    out.key(word).value(count);
  }
  out.end_object();
  out.key("decisions").begin_array();
  for (const HookReplayReply::Item& item : reply.items) {
    out.begin_object().key("id").value(encode_job_id(item.job.seq));
    write_fate(out, item.job);
    write_outcome(out, item.outcome, *item.job.record);
    out.end_object();
  }
  out.end_array().end_object();
  return json_response(std::move(out));
}

}  // namespace reprise::server
