#include "sim/describe.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/json_writer.h"
#include "base/rate.h"

namespace reprise::sim {
namespace {

// Seconds since the start of a simulated run are easier to follow than dates.
std::string at(Timestamp time) {
  if (time == kNever) return "never";
  if (time == Timestamp{}) return "-";
  constexpr Timestamp kStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
  const auto since = (time - kStart).count();
  return fmt::format("{}.{:06}s", since / 1'000'000, std::abs(since % 1'000'000));
}

std::string wait(Duration duration) { return format_duration(duration); }

template <class T>
std::string number_or_none(const std::optional<T>& number) {
  return number ? std::to_string(*number) : "none";
}

std::string wait_or_none(const std::optional<Duration>& duration) {
  return duration ? wait(*duration) : "none";
}

std::string policy_text(const RetryPolicy& policy) {
  JsonWriter out;
  write_retry_json(out, policy);
  return out.take();
}

std::string filter_text(const JobFilter& filter) {
  JsonWriter out;
  write_filter_json(out, filter);
  return out.take();
}

std::string status_text(const std::optional<JobStatus>& status) {
  return status ? std::string(status_name(*status)) : "none";
}

std::string scheduling_text(const Scheduling& scheduling) {
  return fmt::format("fair '{}' weight {} throttles {}", scheduling.fairness_key, scheduling.weight,
                     fmt::join(scheduling.throttle_keys, ","));
}

std::string message_text(const HookMessage& message) {
  return fmt::format("{} attempts {} failures {} error '{}' '{}' first {} [{}]", message.id,
                     message.attempts, message.failures, message.error, message.error_type,
                     at(message.first_attempt_at), describe(*message.job));
}

std::string outcome_text(const HookOutcome& outcome) {
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) {
    return fmt::format("{}: {}", hook_fault_name(failure->fault), failure->message);
  }
  if (const auto* verdict = std::get_if<FailureVerdict>(&outcome)) {
    return verdict->retry ? "retry after " + wait(verdict->delay) : "dlq '" + verdict->reason + "'";
  }
  const auto& verdict = std::get<EnqueueVerdict>(outcome);
  return fmt::format(
      "fair '{}' weight {} throttles {} {}", verdict.fairness_key.value_or(""),
      number_or_none(verdict.weight),
      verdict.throttle_keys ? fmt::format("{}", fmt::join(*verdict.throttle_keys, ",")) : "none",
      verdict.reject ? "rejected" : "");
}

std::string breaker_text(const std::optional<OutagePolicy>& policy) {
  if (!policy) return "none";
  return fmt::format("{} of {} in {} pause {} canaries {}", policy->failure_rate_ppm, policy->min,
                     wait(policy->window), wait(policy->pause), policy->canaries);
}

std::string outage_text(const std::optional<OutageStats>& stats) {
  if (!stats) return "none";
  return fmt::format("{} until {} opened {} spared {} rate {} of {} canaries {}",
                     breaker_state_name(stats->state), at(stats->open_until), stats->opened,
                     stats->spared, stats->failure_rate, stats->ended, stats->canaries_out);
}

std::string hook_stats_text(const std::optional<HookStats>& stats) {
  if (!stats) return "none";
  return fmt::format(
      "{} {} until {} in a row {} opened {} succeeded {} failed {} in flight {} "
      "last '{}' {}",
      stats->version, breaker_state_name(stats->breaker), at(stats->open_until),
      stats->failures_in_a_row, stats->opened, stats->succeeded, fmt::join(stats->failed, ","),
      stats->in_flight, stats->last_error, at(stats->last_error_at));
}

std::string_view lane_choice_name(LaneChoice choice) {
  switch (choice) {
    case LaneChoice::any:
      return "any";
    case LaneChoice::fresh:
      return "fresh";
    case LaneChoice::retry:
      return "retry";
  }
  return "?";
}

}  // namespace

std::string describe_error(const Error& error) {
  return fmt::format("error {}", errc_info(error.code).wire_name);
}

std::string describe(bool flag) { return flag ? "yes" : "no"; }

std::string describe(JobKey job) { return fmt::format("{}/{}", job.queue, job.seq); }

std::string describe(const QueueName& name) { return name.ns + "/" + name.name; }

std::string describe(const LeaseToken& token) {
  return fmt::format("{}:{:x}", describe(token.job), token.nonce);
}

std::string describe(const QueueRecord& queue) {
  const QueueConfig& config = queue.config;
  return fmt::format(
      "{} #{} {}created {} lease {} ttl {} retry {} share {} in flight {} max_jobs {} max_bytes {} "
      "key_window {} dead letters '{}' keep_dead {} max_dead {} keep_completed {} webhook '{}' "
      "hooks "
      "'{}' '{}' else {} timeout {} concurrency {} per key {} breaker {}",
      describe(queue.name), queue.number, queue.paused ? "paused " : "", at(queue.created_at),
      wait(config.lease), wait_or_none(config.ttl), policy_text(config.retry),
      config.fetch.retry_share_ppm, number_or_none(config.fetch.retry_in_flight),
      number_or_none(config.max_jobs), number_or_none(config.max_bytes), wait(config.key_window),
      config.dead_letter_queue, wait_or_none(config.keep_dead), number_or_none(config.max_dead),
      wait_or_none(config.keep_completed), config.on_dead_webhook, config.hooks[0], config.hooks[1],
      on_hook_error_name(config.on_hook_error), number_or_none(config.hook_timeout_ms),
      number_or_none(config.concurrency), number_or_none(config.concurrency_per_key),
      breaker_text(config.breaker));
}

std::string describe(const QueueTotals& totals) {
  return fmt::format(
      "pushed {} duplicates {} claimed {} completed {} failed {} released {} lease_expired {} "
      "expired {} died {} dropped {} corrupt {} moved_in {} moved_out {} claimed_retry {} retried "
      "{} "
      "purged {} dead_expired {} dead_evicted {} dead_now {} completed_now {} live_bytes {}",
      totals.pushed, totals.duplicates, totals.claimed, totals.completed, totals.failed,
      totals.released, totals.lease_expired, totals.expired, totals.died, totals.dropped,
      totals.corrupt, totals.moved_in, totals.moved_out, totals.claimed_retry, totals.retried,
      totals.purged, totals.dead_expired, totals.dead_evicted, totals.dead_now,
      totals.completed_now, totals.live_bytes);
}

std::string describe(const QueueStats& stats) {
  std::string text = describe(stats.queue) + ";";
  for (std::size_t i = 0; i < kJobStatusCount; ++i) {
    text += fmt::format(" {} {}", status_name(static_cast<JobStatus>(i)), stats.by_status[i]);
  }
  const LaneStats& lanes = stats.lanes;
  return fmt::format(
      "{} bytes {} oldest {} waiting {} fresh {} retry {} in flight {} credit {} by failures {}; "
      "on_enqueue {}; on_failure {}; breaker {}; {}",
      text, stats.bytes, wait_or_none(stats.oldest_pending_age), stats.waiting_claims, lanes.fresh,
      lanes.retry, lanes.retry_in_flight, lanes.retry_credit,
      fmt::join(lanes.retries_by_failures, ","), hook_stats_text(stats.hooks[0]),
      hook_stats_text(stats.hooks[1]), outage_text(stats.breaker), describe(stats.totals));
}

std::string describe(const JobRecord& record) {
  std::string headers;
  for (const auto& [name, value] : record.headers) headers += name + "=" + value + ",";
  return fmt::format(
      "pushed {} expires {} priority {} kind {} key '{}' headers {{{}}} {} payload '{}'",
      at(record.pushed_at), at(record.expires_at), record.priority,
      static_cast<int>(record.payload_kind), record.key, headers,
      scheduling_text(record.scheduling), record.payload);
}

std::string describe(const JobState& state) {
  std::string history;
  for (const Attempt& attempt : state.history) {
    history +=
        fmt::format(" #{} of {} {}-{} {} by '{}' '{}' '{}'", attempt.number, attempt.generation,
                    at(attempt.started_at), at(attempt.ended_at), outcome_name(attempt.outcome),
                    attempt.worker, attempt.error, attempt.error_type);
  }
  return fmt::format(
      "{} failures {} attempts {} generation {} due {} returned {} from '{}' lease {:x} {}-{} "
      "worker "
      "'{}' first {} error '{}' '{}' death {} '{}' by {} {} at {} history{}",
      status_name(state.status), state.failures, state.attempts, state.generation, at(state.due),
      at(state.returned_at), state.origin_queue, state.lease_nonce, at(state.lease_started_at),
      at(state.lease_deadline), state.worker, at(state.first_attempt_at), state.last_error,
      state.last_error_type, death_reason_name(state.death_reason), state.death_note,
      decided_by_name(state.decided_by), state.hook_version, at(state.ended_at), history);
}

std::string describe(const std::pair<JobRecord, JobState>& dead) {
  return describe(dead.first) + " " + describe(dead.second);
}

std::string describe(const KeyEntry& entry) {
  return fmt::format("job {} until {}", entry.seq, at(entry.expires_at));
}

std::string describe(const storage::Ending& ending) {
  return fmt::format("fingerprint {:x}", ending.fingerprint);
}

// Without the words of its errors.
std::string describe(const Operation& operation) {
  std::string skipped;
  for (const SkippedJob& job : operation.first_skipped) {
    skipped += " " + job.id + " " + status_text(job.status);
  }
  return fmt::format(
      "#{} {} of {} #{} {} limit {} rate {} total {} by '{}' audit {} from {} {} done {} skipped "
      "{}:{} "
      "cursor '{}' to {}",
      operation.id, operation_kind_name(operation.kind), describe(operation.name), operation.queue,
      filter_text(operation.filter), number_or_none(operation.limit),
      operation.rate ? format_rate(*operation.rate) : "none", number_or_none(operation.total),
      operation.asked_by, operation.audit_number, at(operation.started_at),
      operation_state_name(operation.state), operation.done, operation.skipped, skipped,
      operation.cursor, at(operation.ended_at));
}

std::string describe(const AuditRecord& record) {
  return fmt::format("#{} {} {} {} by '{}' ids {} filter {} done {} skipped {} not found {} of {}",
                     record.number, at(record.at), audit_action_name(record.action),
                     describe(record.queue), record.asked_by, fmt::join(record.ids, ","),
                     record.filter ? filter_text(*record.filter) : "none", record.done,
                     record.skipped, record.not_found, record.operation);
}

std::string describe(const std::vector<Engine::Keeping>& keepings) {
  const auto time = [](const std::optional<Timestamp>& value) {
    return value ? at(*value) : "none";
  };
  std::string text;
  for (const Engine::Keeping& keeping : keepings) {
    text += fmt::format("[#{} dead before {} beyond {} completed before {}]", keeping.queue,
                        time(keeping.dead_before), keeping.dead_beyond_max,
                        time(keeping.completed_before));
  }
  return text;
}

std::string describe(const SelectionReply& reply) {
  std::string skipped;
  for (const SkippedJob& job : reply.skipped)
    skipped += job.id + " " + status_text(job.status) + ",";
  return fmt::format("done {} skipped {} not found {} first {}", reply.done, skipped,
                     fmt::join(reply.not_found, ","),
                     reply.first_refusal ? describe_error(*reply.first_refusal) : "none");
}

std::string describe(const SelectionCommand& command) {
  std::string jobs;
  for (const SelectedJob& job : command.jobs) {
    jobs += " " + (job.seq ? std::to_string(*job.seq) : job.id);
  }
  return describe(command.queue) + jobs;
}

std::string describe(const NewJob& job) {
  return fmt::format("'{}' delay {} priority {} ttl {} key '{}' {}", job.payload.substr(0, 12),
                     wait(job.delay), job.priority, job.ttl ? wait(*job.ttl) : "none", job.key,
                     scheduling_text(job.scheduling));
}

std::string describe(const PushCommand& command) {
  return fmt::format("{}{} {}", describe(command.queue), command.create ? " create" : "",
                     describe(command.jobs));
}

std::string describe(const ClaimCommand& command) {
  return fmt::format("{} max {} wait {} lease {} lane {} worker '{}'", describe(command.queue),
                     command.max, wait(command.wait), command.lease ? wait(*command.lease) : "none",
                     lane_choice_name(command.lane), command.worker);
}

std::string describe(const PushedJob& pushed) {
  return fmt::format("{} {}", pushed.duplicate ? "duplicate of" : "pushed", pushed.seq);
}

std::string describe(const PushReply& reply) { return describe(reply.results); }

std::string describe(const ClaimReply& reply) {
  std::string text = "jobs";
  for (const ClaimedJob& job : reply.jobs) {
    text += fmt::format(" [{} attempts {} failures {} until {} error '{}' {}]",
                        describe(job.token.job), job.attempts, job.failures, at(job.lease_deadline),
                        job.last_error, describe(*job.record));
  }
  return text;
}

std::string describe(const Acked& acked) { return "acked " + describe(acked.job); }

std::string describe(const Failed& failed) {
  return fmt::format("{} {} retry {} reason {} '{}'", status_name(failed.status),
                     describe(failed.job), at(failed.retry_at), death_reason_name(failed.reason),
                     failed.death_note);
}

std::string describe(const ConfigEntry& entry) {
  return fmt::format("{}/{} '{}' since {}", entry.ns, entry.key, entry.value, at(entry.updated_at));
}

std::string describe(const Model::Keys& keys) {
  std::string text;
  for (const auto& [name, key] : keys) {
    text += fmt::format("['{}' pending {} active {} weight {}]", name, key.pending, key.active,
                        key.weight);
  }
  return text;
}

std::string describe(const Throttle& throttle) {
  return fmt::format("{}/{} {} burst {} since {}", throttle.ns, throttle.key,
                     format_rate(throttle.rate), throttle.burst, at(throttle.updated_at));
}

std::string describe(const ThrottleRecord& record) {
  return fmt::format("{} with {} parts at {}", describe(record.throttle), record.level.parts,
                     at(record.level.at));
}

std::string describe(const std::vector<HookWork>& work) {
  std::string text;
  for (const HookWork& item : work) {
    if (const auto* definition = std::get_if<HookDefinition>(&item)) {
      text +=
          fmt::format("[#{} {} is '{}' '{}' within {} {}]", definition->queue,
                      describe(definition->name), definition->sources[0], definition->sources[1],
                      wait(definition->limits.timeout), definition->limits.memory_bytes);
    } else if (const auto* call = std::get_if<HookCall>(&item)) {
      text += fmt::format("[call {} {} of #{}: {}]", call->id, hook_name(call->hook), call->queue,
                          message_text(call->message));
    } else if (const auto* abandoned = std::get_if<AbandonedHook>(&item)) {
      text += fmt::format("[call back {} of #{}]", hook_name(abandoned->hook), abandoned->queue);
    } else if (const auto* change = std::get_if<ConfigChange>(&item)) {
      text +=
          fmt::format("[{}/{} is '{}']", change->ns, change->key, change->value.value_or("(gone)"));
    }
  }
  return text;
}

std::string describe(const std::vector<HookResult>& results) {
  std::string text;
  for (const HookResult& result : results) {
    text += fmt::format("[{} {}]", result.id, outcome_text(result.outcome));
  }
  return text;
}

std::string describe(const Released& released) { return "released " + describe(released.job); }

std::string describe(const Extended& extended) {
  return fmt::format("extended {} until {}", describe(extended.job), at(extended.lease_deadline));
}

std::string describe(const DroppedJob& dropped) {
  return fmt::format("dropped {} that was {}", describe(dropped.job), status_name(dropped.status));
}

}  // namespace reprise::sim
