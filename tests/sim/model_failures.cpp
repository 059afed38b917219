// What becomes of a job that failed, and what people do with those that were given up.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/describe.h"
#include "sim/model.h"
#include "sim/violation.h"

namespace reprise::sim {
namespace {

Error error(Errc code) { return {code, ""}; }

constexpr std::array<std::string_view, 5> kLetterHeaders = {"reprise-origin-queue",
                                                            "reprise-death-reason", "reprise-error",
                                                            "reprise-attempts", "reprise-died-at"};

JobRecord without_letter_headers(JobRecord record) {
  std::erase_if(record.headers, [](const auto& header) {
    return std::ranges::count(kLetterHeaders, header.first) > 0;
  });
  return record;
}

Timestamp expiry(const std::optional<Duration>& ttl, Timestamp now) {
  return ttl ? now + *ttl : kNever;
}

}  // namespace

std::optional<Failed> Model::end_in_failure(const Held& lease, Undecided failure, Timestamp now) {
  Queue& queue = *lease.queue;
  const FailItem& how = failure.how;
  const std::uint32_t failures = lease.job->state.failures + 1;
  // Nothing configured is no cap where there is a hook.
  const auto& most = queue.record.config.retry.attempts;
  const bool capped = most && *most > 0 && failures >= *most;
  failure.spared = queue.guard && queue.guard->state != BreakerState::closed;
  if (queue.record.config.hook(HookKind::on_failure).empty() || how.final || failure.spared ||
      how.delay || capped) {
    return settle_failure(lease, failure, nullptr, now);
  }
  Hook& hook = *queue.hooks[static_cast<std::size_t>(HookKind::on_failure)];
  if (!admit_call(hook, now)) {
    const HookOutcome not_asked = HookFailure{HookFault::breaker_open, ""};
    note_outcome(hook, not_asked, now);
    return settle_failure(lease, failure, &not_asked, now);
  }
  queue.undecided[lease.seq] = failure;
  hook.line.push_back({.failed = lease.seq});
  return std::nullopt;
}

// `hook` null: it was not asked, or there is none.
Failed Model::settle_failure(const Held& lease, const Undecided& failure, const HookOutcome* hook,
                             Timestamp now) {
  Queue& queue = *lease.queue;
  const FailItem& how = failure.how;
  Job& job = *lease.job;
  const JobKey key{queue.record.number, lease.seq};
  const RetryPolicy& policy = queue.record.config.retry;
  JobState& state = job.state;
  end_attempt(job, how.outcome, how, failure.failed_at);
  const bool counts = !failure.spared || how.final || believes_ == Sabotage::count_spared_failures;
  if (counts) ++state.failures;
  state.last_error = how.error;
  state.last_error_type = how.error_type;
  const bool was_canary = job.canary;
  end_lease(queue, lease.seq, LeaseEnd::failed, now);
  ++queue.totals.failed;
  if (how.outcome == AttemptOutcome::lease_expired) ++queue.totals.lease_expired;
  note(EventType::failed);
  const auto die = [&](DeathReason reason, DecidedBy decided_by, const std::string& words = "") {
    bury(queue, lease.seq, reason, decided_by, now);
    serve_waiting(queue, now);
    return Failed{.job = key, .status = JobStatus::dead, .reason = reason, .death_note = words};
  };
  const auto die_by_policy = [&] {
    return die(how.outcome == AttemptOutcome::lease_expired ? DeathReason::lease_expired
               : how.outcome == AttemptOutcome::worker_lost ? DeathReason::worker_lost
                                                            : DeathReason::max_attempts,
               DecidedBy::policy);
  };
  if (how.final) return die(DeathReason::final, DecidedBy::client);
  if (failure.spared) {
    // It goes back to its lane; a canary lets others go first.
    ++queue.guard->spared;
    const Duration pauses = queue.guard->policy.pause * (queue.guard->failed_trials + 1);
    const Duration wait =
        std::max(was_canary ? pauses : Duration::zero(), how.delay.value_or(Duration::zero()));
    if (job.record.expires_at <= now) return die(DeathReason::expired, DecidedBy::policy);
    const bool waits = wait > Duration::zero();
    state.due = now + wait;
    state.status = state.failures > 0 ? JobStatus::failed
                   : waits            ? JobStatus::scheduled
                                      : JobStatus::pending;
    job.in_lane = !waits;
    const Timestamp retry_at = state.due;
    serve_waiting(queue, now);
    return {.job = key, .status = JobStatus::failed, .retry_at = retry_at};
  }
  const QueueConfig& config = queue.record.config;
  const bool has_hook = !config.hook(HookKind::on_failure).empty();
  const bool last = policy.attempts && state.failures >= std::max(*policy.attempts, 1U);
  if (last && (*policy.attempts > 0 || !has_hook)) return die_by_policy();

  const auto* verdict = hook == nullptr ? nullptr : std::get_if<FailureVerdict>(hook);
  const bool no_answer = hook != nullptr && verdict == nullptr && !how.delay;
  if (verdict != nullptr && !verdict->retry && !how.delay) {
    state.death_note = verdict->reason;
    state.hook_version = hook_version(config.hook(HookKind::on_failure));
    return die(DeathReason::hook, DecidedBy::hook, verdict->reason);
  }
  if (no_answer && config.on_hook_error == OnHookError::dlq) {
    return die(DeathReason::hook_error, DecidedBy::policy);
  }
  if (no_answer && config.on_hook_error == OnHookError::policy && last) return die_by_policy();
  if (job.record.expires_at <= now) return die(DeathReason::expired, DecidedBy::policy);
  state.status = JobStatus::failed;
  if (how.delay) {
    state.due = now + *how.delay;
  } else if (verdict != nullptr) {
    state.due = now + verdict->delay;
  } else if (no_answer && config.on_hook_error == OnHookError::retry) {
    state.due = now;
  } else {
    state.due = retry_time(queue, lease.seq, state.failures, now);
  }
  job.in_lane = state.due <= now;
  const Timestamp retry_at = state.due;
  serve_waiting(queue, now);
  return {.job = key, .status = JobStatus::failed, .retry_at = retry_at};
}

// What the policy says, or with jitter what was told, if that is near enough.
Timestamp Model::retry_time(const Queue& queue, Seq seq, std::uint32_t failures,
                            Timestamp now) const {
  const RetryPolicy& policy = queue.record.config.retry;
  if (const auto* cooldown = std::get_if<Duration>(&policy.wait)) return now + *cooldown;
  const auto& backoff = std::get<Backoff>(policy.wait);
  auto wait = static_cast<double>(backoff.base.count());
  const auto max = static_cast<double>(backoff.max.count());
  for (std::uint32_t i = 1; i < failures && wait < max; ++i) wait *= backoff.factor;
  const Duration nominal(std::llround(std::min(wait, max)));
  if (backoff.jitter == 0) return now + nominal;
  const auto told = told_.retries_at.find({queue.record.name, seq});
  require(told != told_.retries_at.end(),
          "nobody was told when job " + std::to_string(seq) + " is tried again");
  const double off = static_cast<double>((told->second - now - nominal).count());
  require(std::abs(off) <= backoff.jitter * static_cast<double>(nominal.count()) + 1,
          "the wait of job " + std::to_string(seq) + " is off by more than its jitter");
  return told->second;
}

void Model::bury(Queue& queue, Seq seq, DeathReason reason, DecidedBy decided_by, Timestamp now) {
  if (reason == DeathReason::expired) {
    const std::size_t place = death_place(queue, seq);
    std::erase_if(told_.met[queue.record.name],
                  [&](const Told::Met& met) { return met.place == place; });
  }
  Job& job = queue.jobs.at(seq);
  job.in_lane = false;
  job.state.status = JobStatus::dead;
  job.state.death_reason = reason;
  job.state.decided_by = decided_by;
  job.state.ended_at = now;
  ++queue.totals.died;
  if (reason == DeathReason::expired) ++queue.totals.expired;
  note(EventType::dead);
  note_keys(queue);
  const QueueConfig& config = queue.record.config;
  if (!config.on_dead_webhook.empty()) {
    webhooks_[{now, queue.record.number, seq}] = {job.record, job.state};
  }
  if (config.dead_letter_queue.empty()) return;

  const Job dead = job;
  const QueueName target{queue.record.name.ns, config.dead_letter_queue};
  Queue* graves = find(target);
  if (graves == nullptr) graves = &create(target, {}, now);
  queue.jobs.erase(seq);
  ++queue.totals.moved_out;
  ++graves->totals.moved_in;
  JobRecord letter = without_letter_headers(dead.record);
  const std::array<std::string, 5> values = {
      queue.record.name.name,
      dead.state.death_note.empty() ? std::string(death_reason_name(reason))
                                    : dead.state.death_note,
      dead.state.last_error, std::to_string(dead.state.attempts), format_timestamp(now)};
  for (std::size_t i = 0; i < values.size(); ++i) {
    letter.headers.emplace_back(kLetterHeaders[i], values[i]);
  }
  letter.expires_at = expiry(graves->record.config.ttl, now);
  JobState state = dead.state;
  state.origin_queue = queue.record.name.name;
  admit(*graves, seq, std::move(letter), std::move(state), now);
}

// It is as a job that has just come, but for its past.
void Model::admit(Queue& queue, Seq seq, JobRecord record, JobState state, Timestamp now) {
  state.status = JobStatus::pending;
  state.failures = 0;
  state.due = {};
  state.returned_at = now;
  state.death_reason = DeathReason::none;
  state.decided_by = DecidedBy::policy;
  state.death_note.clear();
  state.hook_version.clear();
  state.ended_at = {};
  note_keys(queue);
  forget_idle_keys(queue);
  queue.weights.try_emplace(record.scheduling.fairness_key, record.scheduling.weight);
  queue.jobs[seq] = {std::move(record), std::move(state), true};
  serve_waiting(queue, now);
}

// --- By hand.

Status Model::retry_one(Queue& queue, Seq seq, Timestamp now) {
  if (disk_low_) return error(Errc::disk_full);
  const auto found = queue.jobs.find(seq);
  if (found == queue.jobs.end()) return error(Errc::job_not_found);
  const auto [record, state, in_lane, canary] = found->second;
  const JobStatus status = effective_status(&state, now);
  const bool is_letter = !state.origin_queue.empty();
  if (status != JobStatus::dead && status != JobStatus::failed &&
      !(is_letter && status == JobStatus::pending)) {
    return error(Errc::wrong_status);
  }
  Queue* home = is_letter ? find(QueueName{queue.record.name.ns, state.origin_queue}) : &queue;
  if (home == nullptr) return error(Errc::queue_not_found);
  JobRecord back = record;
  if (home == &queue) {
    const Timestamp since = state.returned_at == Timestamp{} ? record.pushed_at : state.returned_at;
    if (record.expires_at != kNever) back.expires_at = now + (record.expires_at - since);
  } else {
    back = without_letter_headers(record);
    back.expires_at = expiry(home->record.config.ttl, now);
    ++queue.totals.moved_out;
    ++home->totals.moved_in;
  }
  queue.jobs.erase(found);
  ++queue.totals.retried;
  note(EventType::retry);
  JobState again = state;
  again.origin_queue.clear();
  ++again.generation;
  admit(*home, seq, std::move(back), std::move(again), now);
  return ok();
}

Status Model::purge_by_hand(Queue& queue, Seq seq, Timestamp /*now*/) {
  return purge_one(queue, seq, PurgeCause::purge);
}

Status Model::purge_one(Queue& queue, Seq seq, PurgeCause cause) {
  const auto found = queue.jobs.find(seq);
  if (found == queue.jobs.end()) return error(Errc::job_not_found);
  if (found->second.state.status != JobStatus::dead) return error(Errc::wrong_status);
  queue.jobs.erase(found);
  if (cause == PurgeCause::purge) ++queue.totals.purged;
  if (cause == PurgeCause::keep_dead) ++queue.totals.dead_expired;
  if (cause == PurgeCause::max_dead) ++queue.totals.dead_evicted;
  note(EventType::purged);
  return ok();
}

// --- What queues keep.

Engine::Keeping Model::keeping_of(const Queue& queue, Timestamp now) {
  const QueueConfig& config = queue.record.config;
  const QueueTotals totals = totals_of(queue);
  Engine::Keeping keeping{.queue = queue.record.number};
  if (config.keep_dead && totals.dead_now > 0) keeping.dead_before = now - *config.keep_dead;
  if (config.max_dead && totals.dead_now > *config.max_dead) {
    keeping.dead_beyond_max = totals.dead_now - *config.max_dead;
  }
  if (totals.completed_now > 0) {
    keeping.completed_before = now - config.keep_completed.value_or(Duration::zero());
  }
  return keeping;
}

std::vector<Engine::Keeping> Model::keepings(Timestamp now) const {
  std::vector<Engine::Keeping> keepings;
  for (const auto& [name, queue] : queues_) {
    const Engine::Keeping keeping = keeping_of(queue, now);
    if (keeping.dead_before || keeping.dead_beyond_max > 0 || keeping.completed_before) {
      keepings.push_back(keeping);
    }
  }
  std::ranges::sort(keepings, {}, &Engine::Keeping::queue);
  return keepings;
}

void Model::let_go(const Engine::EndedRef& ref, Timestamp now) {
  Queue* queue = find(ref.job.queue);
  if (queue == nullptr) return;
  const auto found = queue->jobs.find(ref.job.seq);
  if (found == queue->jobs.end()) return;
  const JobState& state = found->second.state;
  if (state.status != ref.status || state.ended_at != ref.ended_at) return;
  const QueueConfig& config = queue->record.config;
  const Duration age = now - state.ended_at;
  if (ref.status == JobStatus::completed) {
    if (age > config.keep_completed.value_or(Duration::zero())) queue->jobs.erase(found);
  } else if (ref.cause == PurgeCause::max_dead) {
    if (config.max_dead && totals_of(*queue).dead_now > *config.max_dead) {
      (void)purge_one(*queue, ref.job.seq, ref.cause).has_value();
    }
  } else if (config.keep_dead && age > *config.keep_dead) {
    (void)purge_one(*queue, ref.job.seq, ref.cause).has_value();
  }
}

}  // namespace reprise::sim
