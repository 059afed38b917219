// The promises of docs/scheduling.md over any commands: limits hold, tokens are spent on deliveries
// and nothing else, also through restarts, and no claim waits while there is something for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/token_bucket.h"
#include "support/engine_fixture.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

class EngineSchedulingProperty : public test::EngineFixture,
                                 public testing::WithParamInterface<std::uint64_t> {
 protected:
  struct Queue {
    QueueName name;
    QueueConfig config;
    std::set<ClaimId> waiting;
  };

  std::uint64_t roll(std::uint64_t bound) { return dice_.below(bound); }
  QueueConfig random_config() {
    const auto limit = [&]() -> std::optional<std::uint64_t> {
      if (roll(3) == 0) return std::nullopt;
      return 1 + roll(4);
    };
    QueueConfig config{.lease = 1h, .retry = {.attempts = std::nullopt, .wait = 50ms}};
    config.concurrency = limit();
    config.concurrency_per_key = limit();
    if (config.concurrency) *config.concurrency *= 2;
    return config;
  }

  // --- What was given out.
  std::uint64_t active_of(const Queue& queue) const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(held_, [&](const ClaimedJob& job) { return is_of(job, queue); }));
  }
  std::uint64_t active_of(const Queue& queue, const std::string& key) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(held_, [&](const ClaimedJob& job) {
      return is_of(job, queue) && job.record->scheduling.fairness_key == key;
    }));
  }
  bool is_of(const ClaimedJob& job, const Queue& queue) const {
    return job.token.job.queue == *engine_->find_queue(queue.name);
  }
  void note_given(const Queue& queue, const std::vector<ClaimedJob>& jobs) {
    for (const ClaimedJob& job : jobs) {
      held_.push_back(job);
      const Scheduling& scheduling = job.record->scheduling;
      const std::string& key = scheduling.fairness_key;
      if (queue.config.concurrency) {
        ASSERT_LE(active_of(queue), *queue.config.concurrency);
      }
      if (queue.config.concurrency_per_key) {
        ASSERT_LE(active_of(queue, key), *queue.config.concurrency_per_key) << key;
      }
      ASSERT_GT(job.record->expires_at, now());
      for (const std::string& throttle :
           std::set(scheduling.throttle_keys.begin(), scheduling.throttle_keys.end())) {
        const auto bucket = buckets_.find(throttle);
        if (bucket == buckets_.end()) continue;
        ASSERT_GE(bucket->second.whole_tokens(now()), 1U) << "no token of " << throttle;
        bucket->second.take(now());
      }
    }
  }
  void take_answers() {
    for (const Engine::ClaimAnswer& answer : engine_->take_answers()) {
      const auto queue = std::ranges::find_if(
          queues_, [&](const Queue& some) { return some.waiting.contains(answer.id); });
      ASSERT_NE(queue, queues_.end());
      queue->waiting.erase(answer.id);
      ASSERT_TRUE(answer.reply);
      note_given(*queue, answer.reply->jobs);
    }
  }

  // --- What could be.
  bool may_go(const Queue& queue, const JobRecord& record) const {
    const auto& per_key = queue.config.concurrency_per_key;
    if (per_key && active_of(queue, record.scheduling.fairness_key) >= *per_key) return false;
    return std::ranges::all_of(record.scheduling.throttle_keys, [&](const std::string& key) {
      const auto bucket = buckets_.find(key);
      return bucket == buckets_.end() || bucket->second.whole_tokens(now()) > 0;
    });
  }
  // Once all that is due at this moment was done.
  void expect_nobody_waits_in_vain() {
    for (const Queue& queue : queues_) {
      if (queue.waiting.empty()) continue;
      if (queue.config.concurrency && active_of(queue) >= *queue.config.concurrency) continue;
      for (const auto& [key, record] : ledger_.jobs) {
        if (key.queue != *engine_->find_queue(queue.name)) continue;
        const auto state = ledger_.states.find(key);
        const auto status =
            effective_status(state == ledger_.states.end() ? nullptr : &*state->second, now());
        if (status != JobStatus::pending) continue;
        ASSERT_FALSE(may_go(queue, *record))
            << "job " << key.seq << " of " << record->scheduling.fairness_key << " in "
            << queue.name.name << " could be given to one who waits";
      }
    }
  }
  void expect_tokens_as_they_should_be() {
    for (const auto& [key, bucket] : buckets_) {
      const auto seen = engine_->throttle(std::string(kDefaultNamespace), key, now());
      ASSERT_TRUE(seen);
      ASSERT_EQ(seen->tokens, bucket.tokens(now())) << key;
    }
  }

  // --- Steps.
  void push_one(Queue& queue) {
    queue_ = queue.name;
    NewJob job{.priority = static_cast<Priority>(roll(3))};
    job.scheduling.fairness_key = "k" + std::to_string(roll(4));
    job.scheduling.weight = static_cast<std::uint32_t>(1 + roll(5));
    for (std::uint64_t i = roll(3); i > 0; --i) {
      job.scheduling.throttle_keys.push_back("t" + std::to_string(roll(3)));
    }
    if (roll(6) == 0) job.delay = Duration(roll(200'000));
    if (roll(6) == 0) job.ttl = Duration(1 + roll(400'000));
    push("x", job);
  }
  void claim_some(Queue& queue) {
    queue_ = queue.name;
    if (roll(2) == 0) {
      note_given(queue, claim(static_cast<std::uint32_t>(1 + roll(3))));
      return;
    }
    const ClaimId id = next_waiting_++;
    auto reply = engine_->claim(
        id, {.queue = queue.name, .max = static_cast<std::uint32_t>(1 + roll(3)), .wait = 1h},
        now());
    if (reply) {
      ASSERT_TRUE(*reply);
      note_given(queue, (*reply)->jobs);
    } else {
      queue.waiting.insert(id);
    }
  }
  void end_one() {
    if (held_.empty()) return;
    const std::size_t index = roll(held_.size());
    const ClaimedJob job = held_[index];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    switch (roll(5)) {
      case 0:
        ASSERT_TRUE(release(job, Duration(roll(2) * 10'000)));
        break;
      case 1:
        ASSERT_TRUE(fail(job));
        break;
      case 2:
        queue_ = std::ranges::find_if(queues_, [&](const Queue& q) { return is_of(job, q); })->name;
        ASSERT_TRUE(drop(job.token.job.seq));
        break;
      default:
        ASSERT_TRUE(ack(job));
    }
  }
  void change_throttle() {
    const std::string key = "t" + std::to_string(roll(3));
    const std::string ns(kDefaultNamespace);
    const auto bucket = buckets_.find(key);
    if (bucket != buckets_.end() && roll(3) == 0) {
      ASSERT_TRUE(engine_->unset_throttle(ns, key, now()));
      buckets_.erase(bucket);
      return;
    }
    const Rate rate = roll(2) == 0 ? Rate{10, 1s} : Rate{50, 1s};
    const auto burst = static_cast<std::uint32_t>(1 + roll(3));
    ASSERT_TRUE(engine_->set_throttle({.ns = ns, .key = key, .rate = rate, .burst = burst}, now()));
    if (bucket == buckets_.end()) {
      buckets_.emplace(key, TokenBucket(rate, burst, now()));
    } else {
      bucket->second.change(rate, burst, now());
    }
  }
  // In time: each tick at the moment when it is due.
  void pass_in_time(Duration by) {
    const Timestamp until = now() + by;
    while (engine_->next_wake() <= until) {
      clock_.set(std::max(now(), engine_->next_wake()));
      settle();
      if (HasFatalFailure()) return;
    }
    clock_.set(until);
  }
  void settle() {
    for (int ticks = 0; engine_->next_wake() <= now(); ++ticks) {
      ASSERT_LT(ticks, 100) << "the engine turns round and round";
      tick();
      take_answers();
      if (HasFatalFailure()) return;
    }
  }
  void restart_all() {
    restart();
    for (Queue& queue : queues_) queue.waiting.clear();
  }
  void step() {
    Queue& queue = queues_[roll(queues_.size())];
    const std::uint64_t what = roll(100);
    if (what < 30) {
      push_one(queue);
    } else if (what < 55) {
      claim_some(queue);
    } else if (what < 75) {
      end_one();
    } else if (what < 79) {
      change_throttle();
    } else if (what < 81) {
      queue.config = random_config();
      queue_ = queue.name;
      configure(queue.config);
    } else if (what < 83) {
      restart_all();
    } else {
      pass_in_time(Duration(roll(60'000)));
    }
  }

  SeededRandom dice_{GetParam()};
  std::vector<Queue> queues_;
  std::vector<ClaimedJob> held_;
  std::map<std::string, TokenBucket> buckets_;
  ClaimId next_waiting_ = 1;
};

TEST_P(EngineSchedulingProperty, LimitsHoldAndNobodyWaitsInVain) {
  for (std::uint64_t i = 1 + roll(2); i > 0; --i) {
    queues_.push_back({.name = {.name = "q" + std::to_string(i)}, .config = random_config()});
    queue_ = queues_.back().name;
    configure(queues_.back().config);
  }
  for (int i = 0; i < 1'500 * static_cast<int>(test::seed_count(1)); ++i) {
    step();
    if (!HasFatalFailure()) take_answers();
    if (!HasFatalFailure()) settle();
    if (!HasFatalFailure()) expect_tokens_as_they_should_be();
    if (!HasFatalFailure()) expect_nobody_waits_in_vain();
    ASSERT_FALSE(HasFailure()) << "seed " << GetParam() << " step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSchedulingProperty,
                         testing::Range(std::uint64_t{1}, std::uint64_t{21}));

}  // namespace
}  // namespace reprise
