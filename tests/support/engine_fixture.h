// EngineFixture: an engine over a MapLedger with one queue, a clock that stands still, and short
// words for what tests do. Jobs are told apart by their payloads.
// After each test the engine's counts are compared with what the ledger holds, so every test checks
// the books too.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "support/fake_clock.h"
#include "support/map_ledger.h"

namespace reprise {

// How GoogleTest prints what differs.
inline void PrintTo(const QueueTotals& totals, std::ostream* out) {
  *out << "pushed " << totals.pushed << " duplicates " << totals.duplicates << " claimed "
       << totals.claimed << " completed " << totals.completed << " failed " << totals.failed
       << " released " << totals.released << " lease_expired " << totals.lease_expired
       << " expired " << totals.expired << " died " << totals.died << " dropped " << totals.dropped
       << " corrupt " << totals.corrupt << " moved_in " << totals.moved_in << " moved_out "
       << totals.moved_out << " claimed_retry " << totals.claimed_retry << " retried "
       << totals.retried << " purged " << totals.purged << " dead_expired " << totals.dead_expired
       << " dead_evicted " << totals.dead_evicted << " dead_now " << totals.dead_now
       << " completed_now " << totals.completed_now << " live_bytes " << totals.live_bytes;
}
inline void PrintTo(JobStatus status, std::ostream* out) { *out << status_name(status); }
inline void PrintTo(DeathReason reason, std::ostream* out) { *out << death_reason_name(reason); }
inline void PrintTo(Errc code, std::ostream* out) { *out << errc_info(code).wire_name; }
inline void PrintTo(const JobKey& key, std::ostream* out) { *out << key.queue << '/' << key.seq; }

namespace test {

using Names = std::vector<std::string>;

// Jobs by status, as stats tell them.
struct Counts {
  std::uint64_t scheduled = 0;
  std::uint64_t pending = 0;
  std::uint64_t active = 0;
  std::uint64_t failed = 0;
  std::uint64_t dead = 0;
  std::uint64_t completed = 0;

  static Counts of(const std::array<std::uint64_t, kJobStatusCount>& by_status) {
    return {by_status[0], by_status[1], by_status[2], by_status[3], by_status[4], by_status[5]};
  }
  friend bool operator==(const Counts&, const Counts&) = default;
  friend void PrintTo(const Counts& counts, std::ostream* out) {
    *out << "scheduled " << counts.scheduled << " pending " << counts.pending << " active "
         << counts.active << " failed " << counts.failed << " dead " << counts.dead << " completed "
         << counts.completed;
  }
};

class EngineFixture : public testing::Test {
 protected:
  EngineFixture() { configure({}); }
  void TearDown() override { expect_books_to_match_ledger(); }

  // --- Time.
  Timestamp now() const { return clock_.now(); }
  // Lets time pass unnoticed: no tick.
  void pass(Duration by) { clock_.advance(by); }
  void tick() { engine_->tick(now()); }
  void advance(Duration by) {
    pass(by);
    tick();
  }
  // As the broker does when a tick left work behind.
  int ticks_until_idle() {
    int ticks = 0;
    for (; engine_->next_wake() <= now() && ticks < 1000; ++ticks) tick();
    return ticks;
  }

  // --- The engine and its queue.
  // From now on all words below are about the queue of this name.
  void look_at(std::string name) { queue_.name = std::move(name); }
  void configure(const QueueConfig& config) {
    ASSERT_TRUE(engine_->put_queue({.queue = queue_, .config = config}, now()));
  }
  void set_retry(std::uint32_t attempts, Duration cooldown) {
    configure({.retry = {.attempts = attempts, .wait = cooldown}});
  }
  void pause() { EXPECT_TRUE(engine_->pause_queue(queue_, true, now())); }
  void resume() { EXPECT_TRUE(engine_->pause_queue(queue_, false, now())); }
  // A new engine over what the old one has stored.
  void restart() {
    engine_->seal(now());
    make_engine();
    engine_->restore_server(ledger_.server);
    for (const auto& [number, record] : ledger_.queues) {
      engine_->restore_queue(record, ledger_.totals[number]);
    }
    for (const auto& [name, record] : ledger_.throttles) engine_->restore_throttle(record);
    struct Alike {
      QueueNumber queue{};
      Priority priority{};
      Scheduling scheduling;
      std::vector<Seq> seqs;
    };
    std::vector<Alike> fresh;
    for (const auto& job : ledger_.jobs) {
      const auto& key = job.first;
      const auto& record = job.second;
      const auto state = ledger_.states.find(key);
      if (state == ledger_.states.end() && record->expires_at == kNever) {
        const auto alike = std::ranges::find_if(fresh, [&](const Alike& jobs) {
          return jobs.queue == key.queue && jobs.priority == record->priority &&
                 jobs.scheduling == record->scheduling;
        });
        if (alike == fresh.end()) {
          fresh.push_back({key.queue, record->priority, record->scheduling, {key.seq}});
        } else {
          alike->seqs.push_back(key.seq);
        }
        continue;
      }
      engine_->restore_job({.key = key,
                            .priority = record->priority,
                            .expires_at = record->expires_at,
                            .scheduling = record->scheduling,
                            .byte_size = record->byte_size(),
                            .state = state == ledger_.states.end() ? nullptr : &*state->second});
    }
    for (const auto& [queue, priority, scheduling, seqs] : fresh) {
      engine_->restore_fresh(queue, priority, scheduling, seqs);
    }
    engine_->finish_restore();
    for (const auto& [id, operation] : ledger_.operations) engine_->restore_operation(operation);
    for (const auto& [name, entry] : ledger_.config) engine_->restore_config(entry);
  }

  // --- Push.
  // To a queue that asks no hook.
  Result<PushReply> push_at_once(PushCommand command) {
    auto reply = engine_->push(next_request_++, std::move(command), now());
    EXPECT_TRUE(reply) << "a push without a hook is answered at once";
    return reply ? std::move(*reply) : Result<PushReply>(PushReply{});
  }
  PushReply push_all(std::vector<Result<NewJob>> jobs) {
    auto reply = push_at_once({.queue = queue_, .jobs = std::move(jobs)});
    EXPECT_TRUE(reply) << reply.error().detail;
    return reply ? std::move(*reply) : PushReply{};
  }
  Result<PushedJob> try_push(std::string payload, NewJob job = {}) {
    job.payload = std::move(payload);
    return push_all({std::move(job)}).results.at(0);
  }
  Seq push(std::string payload, NewJob job = {}) {
    const auto pushed = try_push(std::move(payload), std::move(job));
    EXPECT_TRUE(pushed) << pushed.error().detail;
    if (!pushed) return 0;
    EXPECT_FALSE(pushed->duplicate);
    return pushed->seq;
  }
  // A job that has died of its first failure, whatever the policy. Nothing else may wait.
  Seq push_dead(std::string payload, NewJob job = {}) {
    const Seq seq = push(std::move(payload), std::move(job));
    EXPECT_EQ(fail(claim_one(), {.error = "boom", .final = true})->job.seq, seq);
    return seq;
  }
  void push_many(const Names& payloads) {
    for (const std::string& payload : payloads) push(payload);
  }
  Errc push_error(std::string payload, NewJob job = {}) {
    const auto pushed = try_push(std::move(payload), std::move(job));
    EXPECT_FALSE(pushed);
    return pushed ? Errc::internal : pushed.error().code;
  }

  // --- Claim.
  std::vector<ClaimedJob> claim(std::uint32_t max = 1, ClaimCommand command = {}) {
    command.queue = queue_;
    command.max = max;
    auto reply = engine_->claim(next_claim_++, std::move(command), now());
    EXPECT_TRUE(reply.has_value() && *reply) << "a claim without wait is answered at once";
    return reply && *reply ? std::move((*reply)->jobs) : std::vector<ClaimedJob>{};
  }
  std::vector<ClaimedJob> claim_from(LaneChoice lane, std::uint32_t max = 1) {
    return claim(max, {.lane = lane});
  }
  ClaimedJob claim_one(ClaimCommand command = {}) {
    auto jobs = claim(1, std::move(command));
    EXPECT_EQ(jobs.size(), 1U) << "nothing to claim";
    return jobs.empty() ? ClaimedJob{.record = std::make_shared<JobRecord>()} : jobs.front();
  }
  static Names names(const std::vector<ClaimedJob>& jobs) {
    Names result;
    for (const ClaimedJob& job : jobs) result.push_back(job.record->payload);
    return result;
  }
  // All that can be claimed now, in order.
  Names claim_all() { return names(claim(1'000'000)); }

  void start_waiting(ClaimId id, ClaimCommand command = {}) {
    command.queue = queue_;
    if (command.wait == Duration::zero()) command.wait = std::chrono::seconds(60);
    EXPECT_FALSE(engine_->claim(id, std::move(command), now())) << "answered at once";
  }
  // What waiting claims have got since the last call; an error shows as its wire name.
  std::map<ClaimId, Names> answers() {
    std::map<ClaimId, Names> result;
    for (const Engine::ClaimAnswer& answer : engine_->take_answers()) {
      const auto text = answer.reply
                            ? names(answer.reply->jobs)
                            : Names{std::string(errc_info(answer.reply.error().code).wire_name)};
      EXPECT_TRUE(result.emplace(answer.id, text).second) << "answered twice: " << answer.id;
    }
    return result;
  }

  // --- Leases.
  Result<Acked> ack(const ClaimedJob& job) {
    const AckItem item{job.token};
    return engine_->ack({&item, 1}, now()).at(0);
  }
  Result<Failed> fail(const ClaimedJob& job, FailItem item = {}) {
    item.token = job.token;
    const auto results = engine_->fail(next_request_++, {&item, 1}, now());
    EXPECT_TRUE(results) << "a failure without a hook is answered at once";
    return results ? results->at(0) : Result<Failed>(Failed{});
  }
  Result<Released> release(const ClaimedJob& job, Duration delay = {}) {
    const ReleaseItem item{job.token, delay};
    return engine_->release({&item, 1}, now()).at(0);
  }
  Result<Extended> extend(const ClaimedJob& job, std::optional<Duration> lease = {}) {
    const ExtendItem item{job.token, lease};
    return engine_->extend({&item, 1}, now()).at(0);
  }
  Result<DroppedJob> drop(Seq seq) { return engine_->drop(queue_, seq, "", now()); }
  SelectionCommand selection(std::vector<Seq> seqs) const {
    SelectionCommand command{.queue = queue_, .asked_by = "ops"};
    for (const Seq seq : seqs) command.jobs.push_back({encode_job_id(seq), seq});
    return command;
  }
  SelectionReply retry(std::vector<Seq> seqs) {
    const auto reply = engine_->retry(selection(std::move(seqs)), now());
    EXPECT_TRUE(reply) << reply.error().detail;
    return reply ? *reply : SelectionReply{};
  }
  SelectionReply purge(std::vector<Seq> seqs) {
    const auto reply = engine_->purge(selection(std::move(seqs)), now());
    EXPECT_TRUE(reply) << reply.error().detail;
    return reply ? *reply : SelectionReply{};
  }

  // --- Looking.
  QueueStats stats() {
    const auto result = engine_->queue_stats(queue_, now());
    EXPECT_TRUE(result) << result.error().detail;
    return result ? *result : QueueStats{};
  }
  Counts counts() { return Counts::of(stats().by_status); }
  QueueTotals totals() { return stats().totals; }
  QueueNumber number() const { return *engine_->find_queue(queue_); }
  JobKey key_of(Seq seq) const { return {number(), seq}; }
  JobState state_of(Seq seq) const {
    const auto found = ledger_.states.find(key_of(seq));
    return found == ledger_.states.end() ? JobState{} : *found->second;
  }
  // The state in which a job died; one that is not dead has no reason.
  JobState death_of(Seq seq) const {
    const auto found = ledger_.dead_jobs.find(key_of(seq));
    return found == ledger_.dead_jobs.end() ? JobState{} : *found->second.state;
  }

  // That an operation which was refused has left no trace.
  template <class Operation>
  void expect_no_change(const Operation& operation) {
    engine_->seal(now());
    engine_->take_events();
    const MapLedger before = ledger_;
    const Counts counts_before = counts();
    const Timestamp wake_before = engine_->next_wake();
    operation();
    engine_->seal(now());
    EXPECT_EQ(ledger_.jobs, before.jobs);
    EXPECT_TRUE(ledger_.states == before.states);
    EXPECT_TRUE(same_jobs(ledger_.dead_jobs, before.dead_jobs));
    EXPECT_TRUE(same_jobs(ledger_.completed_jobs, before.completed_jobs));
    EXPECT_EQ(ledger_.webhooks.size(), before.webhooks.size());
    EXPECT_TRUE(ledger_.queues == before.queues);
    EXPECT_TRUE(ledger_.keys == before.keys);
    EXPECT_EQ(ledger_.totals, before.totals);
    EXPECT_EQ(counts(), counts_before);
    EXPECT_EQ(engine_->next_wake(), wake_before);
    EXPECT_TRUE(engine_->take_events().empty());
  }

  static bool same_jobs(const std::map<JobKey, EndedJob>& a, const std::map<JobKey, EndedJob>& b) {
    return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
      return one.first == other.first && one.second.record == other.second.record &&
             one.second.state == other.second.state;
    });
  }

  void expect_books_to_match_ledger() {
    ticks_until_idle();
    engine_->seal(now());
    for (const QueueStats& seen : engine_->list_queues("", now())) {
      Counts stored;
      LaneStats lanes;
      std::uint64_t bytes = 0;
      for (const auto& [key, record] : ledger_.jobs) {
        if (key.queue != seen.queue.number) continue;
        bytes += record->byte_size();
        const auto state = ledger_.states.find(key);
        const auto status =
            effective_status(state == ledger_.states.end() ? nullptr : &*state->second, now());
        if (status == JobStatus::scheduled) ++stored.scheduled;
        if (status == JobStatus::pending) ++stored.pending;
        if (status == JobStatus::active) ++stored.active;
        if (status == JobStatus::failed) ++stored.failed;
        const std::uint32_t failures = state == ledger_.states.end() ? 0 : state->second->failures;
        if (status == JobStatus::pending) ++(failures > 0 ? lanes.retry : lanes.fresh);
        if (failures == 0) continue;
        if (status == JobStatus::active) {
          ++lanes.retry_in_flight;
        } else {
          ++lanes.retries_by_failures[failure_bucket(failures)];
        }
      }
      for (const auto& [key, dead] : ledger_.dead_jobs) {
        if (key.queue == seen.queue.number) ++stored.dead;
      }
      std::uint64_t completed_now = 0;
      for (const auto& [key, completed] : ledger_.completed_jobs) {
        if (key.queue == seen.queue.number) ++completed_now;
      }
      EXPECT_EQ(seen.totals.completed_now, completed_now) << seen.queue.name.name;
      EXPECT_EQ(seen.lanes.fresh, lanes.fresh) << seen.queue.name.name;
      EXPECT_EQ(seen.lanes.retry, lanes.retry) << seen.queue.name.name;
      EXPECT_EQ(seen.lanes.retry_in_flight, lanes.retry_in_flight) << seen.queue.name.name;
      EXPECT_EQ(seen.lanes.retries_by_failures, lanes.retries_by_failures) << seen.queue.name.name;
      stored.completed = seen.totals.completed;
      EXPECT_EQ(Counts::of(seen.by_status), stored) << seen.queue.name.name;
      EXPECT_EQ(seen.bytes, bytes) << seen.queue.name.name;
      EXPECT_EQ(seen.totals, ledger_.totals[seen.queue.number]) << seen.queue.name.name;
    }
  }

  void make_engine() { engine_ = std::make_unique<Engine>(ledger_, random_, limits_); }

  QueueName queue_{.name = "orders"};
  FakeClock clock_;
  MapLedger ledger_;
  SeededRandom random_{1};
  Limits limits_;
  std::unique_ptr<Engine> engine_ = std::make_unique<Engine>(ledger_, random_, limits_);
  ClaimId next_claim_ = 1'000'000;      // above the ids that tests give to waiting claims
  RequestId next_request_ = 1'000'000;  // the same of pushes and failures
};

}  // namespace test
}  // namespace reprise
