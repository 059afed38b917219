// Which jobs a claim may be given. Several may be next: the one that was told is checked to be
// among them, and nothing may be left that somebody who asks for it could have.
#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/describe.h"
#include "sim/model.h"
#include "sim/violation.h"

namespace reprise::sim {
namespace {

constexpr std::array kLanes = {Lane::fresh, Lane::retry};

bool accepts(LaneChoice choice, Lane lane) {
  return choice == LaneChoice::any ||
         (choice == LaneChoice::fresh ? lane == Lane::fresh : lane == Lane::retry);
}

std::set<std::string> throttle_keys(const Model::Job& job) {
  const auto& keys = job.record.scheduling.throttle_keys;
  return {keys.begin(), keys.end()};
}

}  // namespace

void Model::hear(Told told) {
  check_all_is_explained();
  told_ = std::move(told);
}

void Model::check_all_is_explained() const {
  for (const auto& [name, met] : told_.met) {
    if (met.empty()) continue;
    throw Violation("job " + std::to_string(met.front().seq) + " of " + describe(name) +
                    (met.front().died ? " died before its time" : " was given out and may not be"));
  }
}

// --- Who may be next.

// Fresh jobs by priority, then push order; retries by their retry time, then push order.
bool Model::comes_before(const Queue& queue, Lane lane, Seq a, Seq b) {
  const auto place = [&](Seq seq) {
    const Job& job = queue.jobs.at(seq);
    const std::int64_t first = lane == Lane::fresh ? std::int64_t{job.record.priority}
                                                   : job.state.due.time_since_epoch().count();
    return std::pair(first, seq);
  };
  return place(a) < place(b);
}

// Jobs with the same fairness key and the same throttle keys keep their order.
std::map<Model::Strand, Seq> Model::heads(const Queue& queue, Lane lane) {
  std::map<Strand, Seq> heads;
  for (const auto& [seq, job] : queue.jobs) {
    if (!job.in_lane || job.state.lane() != lane) continue;
    const Strand strand{job.record.scheduling.fairness_key, throttle_keys(job)};
    const auto [head, is_first] = heads.emplace(strand, seq);
    if (!is_first && comes_before(queue, lane, seq, head->second)) head->second = seq;
  }
  return heads;
}

Model::Candidates Model::candidates(const Queue& queue, Lane lane, Timestamp now) const {
  Candidates found;
  if (lane == Lane::retry && !has_room_for_retry(queue)) return found;
  const std::map<Strand, Seq> all = heads(queue, lane);
  for (const auto& [strand, seq] : all) {
    const auto& [key, throttles] = strand;
    if (!key_has_room(queue, key)) continue;
    if (throttles.empty()) {
      found.jobs.insert(seq);
      found.certain = found.ready = true;
      continue;
    }
    // One that waits for no token is not passed over.
    const auto plain = all.find({key, {}});
    if (plain != all.end() && comes_before(queue, lane, plain->second, seq)) continue;
    bool may_be_ready = true;
    bool is_ready = true;
    for (const Bucket* bucket : buckets_of(queue, throttles)) {
      const auto token = static_cast<std::uint64_t>(bucket->throttle.rate.per.count());
      const auto [least, most] = level_of(*bucket, now);
      may_be_ready &= most >= token;
      is_ready &= least >= token;
    }
    if (may_be_ready) found.jobs.insert(seq);
    if (is_ready) found.ready = true;
  }
  return found;
}

bool Model::has_room_for_retry(const Queue& queue) {
  const auto& most = queue.record.config.fetch.retry_in_flight;
  const auto in_flight = std::ranges::count_if(queue.jobs, [](const auto& entry) {
    return is_active(entry.second) && is_retry(entry.second);
  });
  return !most || static_cast<std::uint64_t>(in_flight) < *most;
}

bool Model::key_has_room(const Queue& queue, const std::string& key) const {
  const auto& most = queue.record.config.concurrency_per_key;
  const auto active = std::ranges::count_if(queue.jobs, [&](const auto& entry) {
    const Job& job = entry.second;
    if (job.record.scheduling.fairness_key != key) return false;
    const bool expired = is_alive(job) && !job.state.history.empty() &&
                         job.state.history.back().outcome == AttemptOutcome::lease_expired;
    return is_active(job) || (expired && believes_ == Sabotage::keep_expired_leases);
  });
  return !most || static_cast<std::uint64_t>(active) < *most;
}

// How many more jobs may be leased.
std::uint64_t Model::room(const Queue& queue) const {
  if (queue.record.paused) return 0;
  const auto active = std::ranges::count_if(queue.jobs, [&](const auto& entry) {
    return is_active(entry.second) &&
           !(believes_ == Sabotage::forget_undecided && queue.undecided.contains(entry.first));
  });
  const std::uint64_t most = queue.record.config.concurrency.value_or(UINT64_MAX);
  const std::uint64_t free = most - std::min(most, static_cast<std::uint64_t>(active));
  return std::min(free, guard_room(queue));
}

const Model::Told::Met* Model::next_met(const Queue& queue) const {
  const auto met = told_.met.find(queue.record.name);
  return met == told_.met.end() || met->second.empty() ? nullptr : &met->second.front();
}

// In the course of a tick: a claim was told to have got a job that is not there yet. It was not
// served before, then: what there is now waits for a token that the tick has not noticed yet.
bool Model::is_served_later(const Queue& queue, ClaimId id) const {
  const auto met = told_.met.find(queue.record.name);
  return met != told_.met.end() && std::ranges::any_of(met->second, [&](const Told::Met& next) {
           if (next.died || told_.given_to.at(next.seq) != id) return false;
           const auto job = queue.jobs.find(next.seq);
           return job != queue.jobs.end() && !job->second.in_lane;
         });
}

// In which order jobs died that were over their ttl.
std::size_t Model::death_place(const Queue& queue, Seq seq) const {
  const auto met = told_.met.find(queue.record.name);
  require(met != told_.met.end(), "job " + std::to_string(seq) + " is over its ttl and lives on");
  const auto death = std::ranges::find_if(
      met->second, [&](const Told::Met& next) { return next.died && next.seq == seq; });
  require(death != met->second.end(),
          "job " + std::to_string(seq) + " is over its ttl and lives on");
  return death->place;
}

// --- Claims.

// The job that was told to be next, if it is for this claim.
std::map<Seq, Model::Job>::iterator Model::next_job(Queue& queue, ClaimId id, LaneChoice choice,
                                                    Timestamp now) {
  std::array<Candidates, 2> lanes;
  for (const Lane lane : kLanes) {
    if (accepts(choice, lane)) lanes[static_cast<std::size_t>(lane)] = candidates(queue, lane, now);
  }
  const auto none = [&] {
    require(!lanes[0].certain && !lanes[1].certain,
            "claim " + std::to_string(id) + " is not given a job that it could have");
    require((!lanes[0].ready && !lanes[1].ready) || told_.tick_is_due,
            "claim " + std::to_string(id) + " is not given a job that has its tokens");
    return queue.jobs.end();
  };
  const Told::Met* met = next_met(queue);
  if (met == nullptr || (!met->died && told_.given_to.at(met->seq) != id)) return none();
  const auto job = queue.jobs.find(met->seq);
  const bool is_there = job != queue.jobs.end() && job->second.in_lane;
  const Lane lane = is_there ? job->second.state.lane() : Lane::fresh;
  const Candidates& own = lanes[static_cast<std::size_t>(lane)];
  // It may die of its age, or become possible in the course of a tick.
  if (!is_there || !own.jobs.contains(met->seq)) return none();
  const Candidates& other =
      lanes[static_cast<std::size_t>(lane == Lane::fresh ? Lane::retry : Lane::fresh)];
  share_lanes(queue, lane, other, met->died && !own.certain);
  return job;
}

// While both lanes have a job, each one given earns the retry lane its share of a job. A lane whose
// jobs all name throttles may have been found to have none.
void Model::share_lanes(Queue& queue, Lane lane, const Candidates& other, bool perhaps_not) {
  std::set<std::uint64_t> after;
  for (const std::uint64_t credit : queue.credits) {
    if (!other.certain || perhaps_not) after.insert(credit);
    if (other.jobs.empty()) continue;
    const std::uint64_t more = credit + queue.record.config.fetch.retry_share_ppm;
    if (lane == (more < 1'000'000 ? Lane::fresh : Lane::retry)) {
      after.insert(lane == Lane::fresh ? more : more - 1'000'000);
    }
  }
  require(!after.empty(), "it is not the turn of the " + std::string(lane_name(lane)) + " lane");
  queue.credits = std::move(after);
}

ClaimReply Model::grant(Queue& queue, ClaimId id, const ClaimCommand& command, Timestamp now) {
  ClaimReply reply;
  advance_guard(queue, now);
  while (room(queue) > 0 && reply.jobs.size() < command.max) {
    note_keys(queue);
    const auto found = next_job(queue, id, command.lane, now);
    if (found == queue.jobs.end()) break;
    auto& [seq, job] = *found;
    if (job.record.expires_at <= now) {
      if (believes_ == Sabotage::spend_on_dead) take_tokens(queue, job, now);
      bury(queue, seq, DeathReason::expired, DecidedBy::policy, now);
      continue;
    }
    require(!next_met(queue)->died, "job " + std::to_string(seq) + " died before its time");
    told_.met[queue.record.name].pop_front();
    queue.stretches[static_cast<std::size_t>(job.state.lane())].give(
        job.record.scheduling.fairness_key);
    take_tokens(queue, job, now);
    JobState& state = job.state;
    job.in_lane = false;
    state.status = JobStatus::active;
    if (queue.guard && queue.guard->state == BreakerState::trial) {
      job.canary = true;
      queue.guard->canaries.insert(seq);
    }
    if (++state.attempts == 1) state.first_attempt_at = now;
    state.lease_started_at = now;
    state.lease_deadline = now + command.lease.value_or(queue.record.config.lease);
    state.worker = command.worker;
    ++queue.totals.claimed;
    if (is_retry(job)) ++queue.totals.claimed_retry;
    note(EventType::taken);
    reply.jobs.push_back({.token = {{queue.record.number, seq}, 0},
                          .record = std::make_shared<const JobRecord>(job.record),
                          .attempts = state.attempts,
                          .failures = state.failures,
                          .lease_deadline = state.lease_deadline,
                          .last_error = state.last_error});
  }
  note_keys(queue);
  return reply;
}

// First come, first served, among those whose lane has a job.
void Model::serve_waiting(Queue& queue, Timestamp now) {
  const auto waits_here = [&](const WaitingClaim& claim) {
    return claim.queue == queue.record.number;
  };
  if (std::ranges::none_of(waiting_, waits_here)) return;
  advance_guard(queue, now);
  while (room(queue) > 0) {
    std::array<bool, 2> has_job{};
    for (const Lane lane : kLanes) {
      has_job[static_cast<std::size_t>(lane)] = candidates(queue, lane, now).certain;
    }
    const Told::Met* met = next_met(queue);
    if (met != nullptr) {
      const auto job = queue.jobs.find(met->seq);
      if (job != queue.jobs.end() && job->second.in_lane &&
          candidates(queue, job->second.state.lane(), now).jobs.contains(met->seq)) {
        has_job[static_cast<std::size_t>(job->second.state.lane())] = true;
      }
    }
    const auto first = std::ranges::find_if(waiting_, [&](const WaitingClaim& claim) {
      return waits_here(claim) && std::ranges::any_of(kLanes, [&](Lane lane) {
               return has_job[static_cast<std::size_t>(lane)] && accepts(claim.command.lane, lane);
             });
    });
    if (first == waiting_.end()) break;
    const WaitingClaim claim = *first;  // others may be served meanwhile, elsewhere
    if (is_served_later(queue, claim.id)) break;
    require(met == nullptr || met->died || told_.given_to.at(met->seq) == claim.id,
            "it is the turn of claim " + std::to_string(claim.id));
    ClaimReply reply = grant(queue, claim.id, claim.command, now);
    if (reply.jobs.empty()) continue;  // all it could have had was over its ttl
    answers_.emplace(claim.id, std::move(reply));
    std::erase_if(waiting_, [&](const WaitingClaim& other) { return other.id == claim.id; });
  }
  require(told_.tick_is_due || std::ranges::none_of(waiting_,
                                                    [&](const WaitingClaim& claim) {
                                                      return waits_here(claim) &&
                                                             is_ready_for(queue, claim.command.lane,
                                                                          now);
                                                    }),
          "a claim waits for a job of " + describe(queue.record.name) + " that has its tokens");
}

bool Model::is_ready_for(const Queue& queue, LaneChoice choice, Timestamp now) const {
  return room(queue) > 0 && std::ranges::any_of(kLanes, [&](Lane lane) {
           return accepts(choice, lane) && candidates(queue, lane, now).ready;
         });
}

bool Model::somebody_waits_in_vain(Timestamp now) const {
  return std::ranges::any_of(queues_, [&](const auto& entry) {
    const Queue& queue = entry.second;
    return std::ranges::any_of(waiting_, [&](const WaitingClaim& claim) {
      return claim.queue == queue.record.number && is_ready_for(queue, claim.command.lane, now);
    });
  });
}

// --- Keys.

// A key is known as long as it has jobs that are neither dead nor completed.
void Model::forget_idle_keys(Queue& queue) {
  std::erase_if(queue.weights, [&](const auto& entry) {
    return std::ranges::none_of(queue.jobs, [&](const auto& job) {
      return is_alive(job.second) && job.second.record.scheduling.fairness_key == entry.first;
    });
  });
}

// Tells the stretches who is owed jobs. Where throttles or limits hold keys back, nobody can say.
void Model::note_keys(Queue& queue) const {
  for (const Lane lane : kLanes) {
    FairStretch::Weights weights;
    bool free = !queue.record.config.concurrency_per_key;
    for (const auto& [seq, job] : queue.jobs) {
      if (!job.in_lane || job.state.lane() != lane) continue;
      const std::string& key = job.record.scheduling.fairness_key;
      weights[key] = believes_ == Sabotage::ignore_weights ? 1 : queue.weights.at(key);
      free &= job.record.scheduling.throttle_keys.empty();
    }
    queue.stretches[static_cast<std::size_t>(lane)].see(free ? weights : FairStretch::Weights{});
  }
}

Model::Keys Model::keys_of(const Queue& queue) {
  Keys keys;
  for (const auto& [seq, job] : queue.jobs) {
    if (!is_alive(job)) continue;
    Key& key = keys[job.record.scheduling.fairness_key];
    key.weight = queue.weights.at(job.record.scheduling.fairness_key);
    if (job.in_lane) ++key.pending;
    if (is_active(job)) ++key.active;
  }
  return keys;
}

void Model::see_credit(const QueueName& name, double credit) {
  std::set<std::uint64_t>& credits = queues_.at(name).credits;
  const auto seen = static_cast<std::uint64_t>(credit * 1'000'000 + 0.5);
  if (credits.size() > 1 && credits.contains(seen)) credits = {seen};
}

}  // namespace reprise::sim
