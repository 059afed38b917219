// One job, by its seq alone: for clients that know jobs by their numbers.
#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

Error no_such_job(JobKey job) { return {Errc::job_not_found, "no job " + encode_job_id(job.seq)}; }

Error not_so(JobKey job, JobStatus status, std::string_view what) {
  return {Errc::wrong_status, "job " + encode_job_id(job.seq).substr(0, kShownIdChars) + " is " +
                                  std::string(status_name(status)) + "; " + std::string(what)};
}

}  // namespace

bool Engine::is_in(JobKey job) {
  const auto record = ledger_.record(job);
  if (!record || *record != nullptr) return true;
  const auto dead = ledger_.dead(job);
  return !dead || dead->record != nullptr;
}

std::optional<JobKey> Engine::locate(const std::string& ns, std::span<const std::string> guesses,
                                     Seq seq) {
  if (seq == 0 || seq >= server_.next_seq) return std::nullopt;
  for (const std::string& guess : guesses) {
    const QueueState* queue = lookup({ns, guess});
    if (queue == nullptr) continue;
    if (const JobKey job{queue->record.number, seq}; is_in(job)) return job;
  }
  for (const auto& [name, queue] : queues_) {
    if (name.ns != ns) continue;
    if (const JobKey job{queue->record.number, seq}; is_in(job)) return job;
  }
  return std::nullopt;
}

Result<Engine::Sight> Engine::look_at(JobKey job, Timestamp now) {
  const auto found = by_number_.find(job.queue);
  if (found == by_number_.end()) return no_such_job(job);
  const QueueState& queue = *found->second;
  const auto record = ledger_.record(job);
  if (!record) return record.error();
  if (*record != nullptr) {
    const auto state = ledger_.state(job);
    if (!state) return state.error();
    return Sight{.status = effective_status(state->get(), now),
                 .record = *record,
                 .state = *state,
                 .lease = lease_of(queue, **record)};
  }
  const auto dead = ledger_.dead(job);
  if (!dead) return dead.error();
  if (dead->record == nullptr) return no_such_job(job);
  return Sight{.status = JobStatus::dead,
               .record = dead->record,
               .state = dead->state,
               .lease = lease_of(queue, *dead->record)};
}

Result<ClaimedJob> Engine::claim_job(JobKey job, const ClaimCommand& command, Timestamp now) {
  auto sight = look_at(job, now);
  if (!sight) return sight.error();
  if (is_leased(job)) return not_so(job, JobStatus::active, "only one that waits can be reserved");
  if (by_number_.at(job.queue)->room() == 0 && !by_number_.at(job.queue)->rest) {
    return not_so(job, sight->status, "and its queue gives out none now");
  }
  if (sight->status == JobStatus::dead) {
    const auto home = home_of(*by_number_.at(job.queue), *sight->state);
    if (!home) return home.error();
    const QueueNumber back_in = (*home)->record.number;
    REPRISE_TRY(check_disk_for_retry());
    REPRISE_TRY(retry_dead(*by_number_.at(job.queue), job, {sight->record, sight->state},
                           Return::taken, now));
    job.queue = back_in;
    sight = look_at(job, now);
    if (!sight) return sight.error();
    // A claim that waited may have got it.
    if (is_leased(job)) return not_so(job, JobStatus::active, "somebody else was first");
  }
  QueueState& queue = *by_number_.at(job.queue);
  const StrandRef strand = queue.jobs.strand(sight->record->scheduling);
  forget_waiting(queue, job, *sight->record, sight->state.get());
  rearm(queue);
  StepBudget budget;
  auto claimed = lease_job(queue, job, strand, command, budget, now);
  if (!claimed) return no_such_job(job);
  count_claimed(queue, std::span(&*claimed, 1), now);
  return std::move(*claimed);
}

Status Engine::make_pending(JobKey job, Timestamp now) {
  const auto sight = look_at(job, now);
  if (!sight) return sight.error();
  QueueState& queue = *by_number_.at(job.queue);
  if (is_leased(job)) return not_so(job, JobStatus::active, "it is pending when it is released");
  switch (sight->status) {
    case JobStatus::dead:
    case JobStatus::failed:
      return retry_one(queue, job.seq, now);
    case JobStatus::scheduled:
      return end_delay_of(queue, job, now);
    default:
      return not_so(job, sight->status, "only dead, failed and scheduled jobs become pending");
  }
}

Status Engine::end_delay_of(QueueState& queue, JobKey key, Timestamp now) {
  const auto record = ledger_.record(key);
  const auto before = ledger_.state(key);
  if (!record) return record.error();
  if (!before) return before.error();
  const StrandRef strand = queue.jobs.strand((*record)->scheduling);
  forget_waiting(queue, key, **record, before->get());
  auto state = std::make_shared<JobState>(**before);
  state->status = JobStatus::pending;
  state->due = {};
  state->generation += 1;
  ++queue.totals.retried;
  touch(queue);
  emit(EventType::retry, queue, key.seq, now, {.generation = state->generation});
  place(queue, key, (*record)->priority, strand, *state, now);
  ledger_.put_state(key, std::move(state));
  rearm(queue);
  serve_waiting(queue, now);
  return ok();
}

std::optional<Seq> Engine::next_pending(const QueueName& name, Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return std::nullopt;
  StepBudget budget;
  const Candidates found = candidates(*queue, LaneChoice::any, budget, now);
  if (found.fresh) return found.fresh->job.seq;
  if (found.retry) return found.retry->job.seq;
  return std::nullopt;
}

std::optional<Seq> Engine::next_delayed(const QueueName& name) const {
  const QueueState* queue = lookup(name);
  if (queue == nullptr) return std::nullopt;
  std::optional<TimedSeq> next;
  if (!queue->scheduled.empty()) next = queue->scheduled.begin()->first;
  if (!queue->cooling.empty() && (!next || queue->cooling.front() < *next)) {
    next = queue->cooling.front();
  }
  return next ? std::optional(next->seq) : std::nullopt;
}

std::uint64_t Engine::dead_in(const QueueName& name) const {
  const QueueState* queue = lookup(name);
  return queue == nullptr ? 0 : queue->totals.dead_now;
}

std::uint64_t Engine::count_below(const QueueName& name, Priority priority) const {
  const QueueState* queue = lookup(name);
  return queue == nullptr ? 0 : queue->jobs.count_below(priority);
}

std::optional<Engine::RestLeft> Engine::rest_of(const QueueName& name, Timestamp now) const {
  const QueueState* queue = lookup(name);
  if (queue == nullptr || !queue->rest) return std::nullopt;
  return RestLeft{.asked = queue->rest->asked,
                  .left = std::max(queue->rest->until - now, Duration::zero())};
}

}  // namespace reprise
