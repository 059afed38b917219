// Fairness keys, strands, throttles and limits together, against a search through all jobs: over
// any pushes, claims, drops, leases and changes of what is allowed, nothing is given out that may
// not be, and nothing that may be is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/pending_jobs.h"
#include "engine/throttles.h"
#include "engine/token_bucket.h"
#include "support/fake_clock.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

const std::string kNamespace = "default";

// What is known of a job.
struct Job {
  Seq seq{};
  Scheduling scheduling;
  Lane lane = Lane::fresh;
  Priority priority{};
  Timestamp at{};  // of a retry

  std::pair<std::int64_t, Seq> rank() const {
    return {lane == Lane::fresh ? priority : at.time_since_epoch().count(), seq};
  }
  bool is_of_strand(const Job& other) const {
    return lane == other.lane && scheduling.fairness_key == other.scheduling.fairness_key &&
           throttle_set() == other.throttle_set();
  }
  std::set<std::string> throttle_set() const {
    return {scheduling.throttle_keys.begin(), scheduling.throttle_keys.end()};
  }
};

struct Held {
  Job job;
  StrandRef strand;
};

// One queue: the real one, and what it must be like.
struct Queue {
  Queue(QueueNumber number, Throttles& throttles)
      : jobs(std::make_unique<PendingJobs>(number, kNamespace, throttles)) {}

  std::uint64_t active_of(const std::string& key) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        leases, [&](const Held& held) { return held.job.scheduling.fairness_key == key; }));
  }
  std::size_t known_keys() const {
    std::set<std::string> names;
    for (const auto& [seq, job] : pending) names.insert(job.scheduling.fairness_key);
    for (const Held& held : leases) names.insert(held.job.scheduling.fairness_key);
    for (const Held& held : cooling) names.insert(held.job.scheduling.fairness_key);
    return names.size();
  }

  std::unique_ptr<PendingJobs> jobs;  // before those who refer to its strands
  std::map<Seq, Job> pending;
  std::vector<Held> leases;
  std::vector<Held> cooling;
  std::optional<std::uint64_t> per_key;
  std::uint64_t delivered = 0;
};

class PendingJobsProperty : public testing::TestWithParam<std::uint64_t> {
 protected:
  Timestamp now() const { return clock_.now(); }
  std::uint64_t roll(std::uint64_t bound) { return dice_.below(bound); }
  template <class T>
  T& any_of(std::vector<T>& some) {
    return some[roll(some.size())];
  }

  void make_queue() { queues_.push_back(Queue(next_queue_++, throttles_)); }

  // --- What may be given out.
  bool has_tokens(const Job& job) const {
    return std::ranges::all_of(job.throttle_set(), [&](const std::string& key) {
      const auto bucket = buckets_.find(key);
      return bucket == buckets_.end() || bucket->second.whole_tokens(now()) > 0;
    });
  }
  bool may_go(const Queue& queue, const Job& job) const {
    return (!queue.per_key || queue.active_of(job.scheduling.fairness_key) < *queue.per_key) &&
           has_tokens(job);
  }
  const Job* any_that_may_go(const Queue& queue, Lane lane) const {
    const auto found = std::ranges::find_if(queue.pending, [&](const auto& entry) {
      return entry.second.lane == lane && may_go(queue, entry.second);
    });
    return found == queue.pending.end() ? nullptr : &found->second;
  }

  // --- Time.
  // As the engine does it when it is in time.
  void wake() {
    for (int rounds = 0; throttles_.next_wake() <= now(); ++rounds) {
      ASSERT_LT(rounds, 10) << "it is woken again and again for nothing";
      throttles_.wake(now(),
                      [](Strand& strand, Lane lane) { strand.key.jobs.look_again(strand, lane); });
      throttles_.settle(now());
    }
  }
  void pass(Duration by) {
    const Timestamp until = now() + by;
    while (throttles_.next_wake() <= until) {
      clock_.set(std::max(now(), throttles_.next_wake()));
      wake();
      if (HasFatalFailure()) return;
    }
    clock_.set(until);
  }

  // --- Steps.
  void push(Queue& queue) {
    Job job;
    job.seq = next_seq_++;
    job.priority = static_cast<Priority>(roll(3));
    job.scheduling.fairness_key = roll(4) == 0 ? "default" : "k" + std::to_string(roll(keys_));
    job.scheduling.weight = static_cast<std::uint32_t>(1 + roll(roll(2) == 0 ? 1000 : 3));
    for (std::uint64_t i = roll(4); i > 0; --i) {
      job.scheduling.throttle_keys.push_back("t" + std::to_string(roll(4)));
    }
    const StrandRef strand = queue.jobs->strand(job.scheduling);
    queue.jobs->set_weight(strand->key, job.scheduling.weight);
    queue.jobs->insert_fresh(*strand, job.priority, job.seq);
    queue.pending[job.seq] = job;
  }

  void drop(Queue& queue) {
    if (queue.pending.empty()) return;
    const auto place =
        std::next(queue.pending.begin(), static_cast<std::ptrdiff_t>(roll(queue.pending.size())));
    const Job job = place->second;
    queue.pending.erase(place);
    if (roll(5) == 0) {
      EXPECT_TRUE(queue.jobs->erase(job.seq));
    } else if (job.lane == Lane::retry) {
      EXPECT_TRUE(queue.jobs->erase_retry({job.at, job.seq}));
    } else {
      Strand* strand = queue.jobs->find(job.scheduling);
      ASSERT_NE(strand, nullptr);
      EXPECT_TRUE(queue.jobs->erase_fresh(*strand, job.priority, job.seq));
    }
  }

  // What the lane has to give, and that this is as it should be. Whoever is woken for a token that
  // is of no use to him passes it on at once.
  std::optional<PendingJobs::Next> next(Queue& queue, Lane lane) {
    std::optional<PendingJobs::Next> found;
    for (int rounds = 0; rounds < 1'000; ++rounds) {
      wake();
      if (HasFatalFailure()) return std::nullopt;
      StepBudget budget;
      found = queue.jobs->next(lane, queue.per_key, budget, now());
      if (found || throttles_.next_wake() > now()) break;
    }
    if (!found) {
      const Job* left = any_that_may_go(queue, lane);
      EXPECT_EQ(left, nullptr) << "left behind: " << left->seq << " of "
                               << left->scheduling.fairness_key;
      return std::nullopt;
    }
    const auto job = queue.pending.find(found->job.seq);
    EXPECT_NE(job, queue.pending.end());
    if (job == queue.pending.end()) return std::nullopt;
    EXPECT_EQ(job->second.lane, lane);
    EXPECT_TRUE(may_go(queue, job->second)) << "job " << job->first << " may not be given out";
    for (const auto& [seq, other] : queue.pending) {
      if (!other.is_of_strand(job->second)) continue;
      EXPECT_LE(job->second.rank(), other.rank()) << seq;
    }
    return found;
  }

  void claim(Queue& queue) {
    auto fresh = next(queue, Lane::fresh);
    auto retry = next(queue, Lane::retry);
    // The second look may have changed what the first one found, as it may have woken somebody.
    if (fresh && roll(2) == 0) retry.reset();
    if (!fresh && !retry) return;
    const PendingJobs::Next chosen = retry ? *next(queue, Lane::retry) : *next(queue, Lane::fresh);
    const Job job = queue.pending.at(chosen.job.seq);
    const StrandRef strand = queue.jobs->take(chosen);
    queue.pending.erase(job.seq);
    if (roll(8) == 0) {
      queue.jobs->passed_over(chosen);
      return;
    }
    queue.jobs->lease_began(*strand);
    queue.jobs->delivered(chosen, now());
    queue.leases.push_back({job, strand});
    ++queue.delivered;
    for (const std::string& key : job.throttle_set()) {
      if (const auto bucket = buckets_.find(key); bucket != buckets_.end()) {
        bucket->second.take(now());
      }
    }
  }

  void end_lease(Queue& queue) {
    if (queue.leases.empty()) return;
    const std::size_t index = roll(queue.leases.size());
    Held held = std::move(queue.leases[index]);
    queue.leases.erase(queue.leases.begin() + static_cast<std::ptrdiff_t>(index));
    queue.jobs->lease_ended(*held.strand, queue.per_key);
    switch (roll(4)) {
      case 0:
        held.job.lane = Lane::retry;
        held.job.at = now();
        come_back(queue, held);
        break;
      case 1:
        held.job.lane = Lane::retry;
        queue.cooling.push_back(std::move(held));
        break;
      case 2:
        come_back(queue, held);
        break;
      default:
        break;  // done
    }
  }
  static void come_back(Queue& queue, const Held& held) {
    if (held.job.lane == Lane::retry) {
      queue.jobs->insert_retry(held.strand, {held.job.at, held.job.seq}, 1);
    } else {
      queue.jobs->insert_fresh(*held.strand, held.job.priority, held.job.seq);
    }
    queue.pending[held.job.seq] = held.job;
  }
  void end_cooling(Queue& queue) {
    if (queue.cooling.empty()) return;
    Held held = std::move(queue.cooling.back());
    queue.cooling.pop_back();
    held.job.at = now();
    come_back(queue, held);
  }

  void change_throttle() {
    static const std::array<Rate, 5> rates = {Rate{1, 1s}, Rate{10, 1s}, Rate{7, 3s},
                                              Rate{1000, 1s}, Rate{1, 1h}};
    const std::string key = "t" + std::to_string(roll(4));
    const auto bucket = buckets_.find(key);
    if (bucket != buckets_.end() && roll(3) == 0) {
      throttles_.unset(kNamespace, key, now());
      buckets_.erase(bucket);
      return;
    }
    const Rate rate = rates[roll(rates.size())];
    const auto burst = static_cast<std::uint32_t>(1 + roll(roll(2) == 0 ? 1 : 6));
    throttles_.set({.ns = kNamespace, .key = key, .rate = rate, .burst = burst}, now());
    if (bucket == buckets_.end()) {
      buckets_.emplace(key, TokenBucket(rate, burst, now()));
    } else {
      bucket->second.change(rate, burst, now());
    }
  }

  void change_limit(Queue& queue) {
    queue.per_key = roll(3) == 0 ? std::nullopt : std::optional(1 + roll(3));
    queue.jobs->look_at_limits_again();
  }

  void step() {
    Queue& queue = any_of(queues_);
    const std::uint64_t what = roll(100);
    if (what < 30) {
      push(queue);
    } else if (what < 55) {
      claim(queue);
    } else if (what < 70) {
      end_lease(queue);
    } else if (what < 75) {
      drop(queue);
    } else if (what < 78) {
      end_cooling(queue);
    } else if (what < 82) {
      change_throttle();
    } else if (what < 84) {
      change_limit(queue);
    } else if (what < 85 && roll(4) == 0) {
      // The queue is deleted, with all that waits in it.
      const auto index = static_cast<std::ptrdiff_t>(&queue - queues_.data());
      queue.leases.clear();
      queue.cooling.clear();
      queues_.erase(queues_.begin() + index);
      make_queue();
    } else if (what < 92) {
      const Timestamp next = throttles_.next_wake();
      if (next != kNever) pass(std::max(next - now(), Duration(0)));
    } else {
      pass(Duration(roll(300'000)));
    }
  }

  void check() {
    for (const auto& [key, bucket] : buckets_) {
      const auto seen = throttles_.find(kNamespace, key, now());
      ASSERT_TRUE(seen);
      ASSERT_EQ(seen->tokens, bucket.tokens(now())) << "tokens of " << key;
    }
    ASSERT_EQ(throttles_.count(kNamespace), buckets_.size());
    for (const Queue& queue : queues_) {
      const auto retries = static_cast<std::uint64_t>(std::ranges::count_if(
          queue.pending, [](const auto& entry) { return entry.second.lane == Lane::retry; }));
      ASSERT_EQ(queue.jobs->retry_size(), retries);
      ASSERT_EQ(queue.jobs->fresh_size(), queue.pending.size() - retries);
      ASSERT_EQ(queue.jobs->key_count(), queue.known_keys());
      const auto oldest = std::ranges::find_if(
          queue.pending, [](const auto& entry) { return entry.second.lane == Lane::fresh; });
      ASSERT_EQ(queue.jobs->oldest_fresh(),
                oldest == queue.pending.end() ? std::nullopt : std::optional(oldest->first));
    }
  }
  void check_stats() {
    for (const Queue& queue : queues_) {
      const KeysStats stats = queue.jobs->stats(now());
      KeyStats sum = stats.other;
      for (const KeyStats& key : stats.top) {
        sum.pending += key.pending;
        sum.active += key.active;
        sum.delivered += key.delivered;
        ASSERT_EQ(key.active, queue.active_of(key.key));
      }
      ASSERT_EQ(sum.pending, queue.pending.size());
      ASSERT_EQ(sum.active, queue.leases.size());
      ASSERT_LE(sum.delivered, queue.delivered);
      ASSERT_EQ(stats.active, queue.known_keys());
      ASSERT_LE(stats.top.size(), kTopKeys);
    }
  }

  // Whatever could be given out is, in a time that suffices for all of it.
  void drain(Queue& queue) {
    for (int i = 0; !queue.pending.empty() && !HasFailure(); ++i) {
      ASSERT_LT(i, 100'000) << queue.pending.size() << " are left";
      while (!queue.leases.empty()) {
        queue.jobs->lease_ended(*queue.leases.back().strand, queue.per_key);
        queue.leases.pop_back();
      }
      const std::size_t before = queue.pending.size();
      claim(queue);
      if (queue.pending.size() < before) continue;
      ASSERT_NE(throttles_.next_wake(), kNever) << "nothing would ever happen";
      pass(throttles_.next_wake() - now());
    }
    queue.leases.clear();
    queue.cooling.clear();
    ASSERT_EQ(queue.jobs->key_count(), 0U);
    ASSERT_EQ(queue.jobs->fresh_size() + queue.jobs->retry_size(), 0U);
  }

  test::FakeClock clock_;
  SeededRandom dice_{GetParam()};
  Throttles throttles_;
  std::vector<Queue> queues_;
  std::map<std::string, TokenBucket> buckets_;
  QueueNumber next_queue_ = 1;
  Seq next_seq_ = 1;
  std::uint64_t keys_ = 1 + GetParam() % 7;
};

TEST_P(PendingJobsProperty, NothingIsGivenThatMayNotBeAndNothingIsLeftBehind) {
  for (std::uint64_t round = 0; round < test::seed_count(3) && !HasFailure(); ++round) {
    queues_.clear();
    for (std::uint64_t i = 1 + roll(3); i > 0; --i) make_queue();
    for (int i = 0; i < 1'500 && !HasFailure(); ++i) {
      step();
      check();
      if (i % 50 == 0) check_stats();
      if (HasFailure()) FAIL() << "seed " << GetParam() << " round " << round << " step " << i;
    }
    for (Queue& queue : queues_) drain(queue);
    EXPECT_EQ(throttles_.next_wake(), kNever) << "nobody waits any more";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PendingJobsProperty,
                         testing::Range(std::uint64_t{1}, std::uint64_t{31}));

}  // namespace
}  // namespace reprise
