// PendingJobs: the pending jobs of one queue, by lane and fairness key, and which is next.
// Knows every key that has a job that has not ended, whatever it waits for (fair_key.h).
//
// next() ─▶ take() ─▶ delivered() or passed_over(): a job that turned out to be dead costs its key
// no turn and no token.
//
// What holds a key or strand back is found out when its turn comes, and it is then set aside until
// that ends: no step looks at all of them.
// Threads: the engine's only. Time: comes in; never runs backwards.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "engine/delivery_window.h"
#include "engine/fair_key.h"
#include "engine/fair_order.h"
#include "engine/key_ranking.h"
#include "engine/lanes.h"
#include "engine/seq_set.h"
#include "engine/step_budget.h"
#include "engine/throttles.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

class PendingJobs {
 public:
  PendingJobs(QueueNumber queue, std::string ns, Throttles& throttles);
  ~PendingJobs();
  PendingJobs(const PendingJobs&) = delete;
  PendingJobs& operator=(const PendingJobs&) = delete;

  QueueNumber queue() const { return queue_; }

  // --- Strands.
  // That of jobs with these attributes.
  StrandRef strand(const Scheduling& scheduling);
  // Null: there is no such job.
  Strand* find(const Scheduling& scheduling);
  // The job pushed last says what its key weighs.
  void set_weight(FairKey& key, std::uint32_t weight);
  // At a start jobs come in any order: the one with the highest seq says it.
  void restore_weight(FairKey& key, std::uint32_t weight, Seq seq);
  void finish_restore() { restored_weights_.reset(); }

  // --- Jobs that come and go.
  void insert_fresh(Strand& strand, Priority priority, Seq seq);
  void insert_fresh(Strand& strand, Priority priority, std::span<const Seq> seqs);  // ascending
  bool erase_fresh(Strand& strand, Priority priority, Seq seq);
  void insert_retry(const StrandRef& strand, TimedSeq job, std::uint32_t failures);
  bool erase_retry(TimedSeq job);
  // Of a job that cannot be read: looks through all of them.
  bool erase(Seq seq);

  // --- Who is next.
  struct Next {
    Strand* strand{};
    Lane lane{};
    Priority priority{};  // of a fresh job
    TimedSeq job;         // its seq; of a retry with its time
  };
  // Nothing: no job of the lane may be given out now, or the budget is spent before one is found.
  std::optional<Next> next(Lane lane, std::optional<std::uint64_t> per_key, StepBudget& budget,
                           Timestamp now);
  // Takes it out of its lane. Then one of the other two, before anything else is asked.
  StrandRef take(const Next& next);
  void delivered(const Next& next, Timestamp now);
  void passed_over(const Next& next);

  // --- Leases.
  void lease_began(Strand& strand);
  // True: its key has room again.
  bool lease_ended(Strand& strand, std::optional<std::uint64_t> per_key);
  // concurrency_per_key has changed.
  void look_at_limits_again();
  // A token may have come for it.
  void look_again(Strand& strand, Lane lane);

  // --- What can be seen.
  std::uint64_t fresh_size() const { return fresh_size_; }
  std::uint64_t retry_size() const { return retries_.size(); }
  const RetryCounts& retry_counts() const { return retries_.counts(); }
  // The fresh job pushed longest ago, and the retry that has been due longest.
  std::optional<Seq> oldest_fresh() const;
  std::optional<TimedSeq> oldest_retry() const;
  KeysStats stats(Timestamp now);
  // Fresh jobs that are more urgent than this. Looks at all keys.
  std::uint64_t count_below(Priority priority) const;
  std::size_t key_count() const { return keys_.size(); }

 private:
  friend class StrandRef;
  friend struct Strand;

  FairOrder& order(Lane lane) { return lane == Lane::fresh ? fresh_order_ : retry_order_; }
  FairKey* find_key(std::string_view name);
  FairKey& key_of(const std::string& name);
  Strand& make_strand(FairKey& key, ThrottleSet* set);
  // Nobody refers to it any more.
  void forget(Strand& strand);
  void remember_place(const FairKey& key);

  // What stands between a strand's head and the order of its key.
  static std::optional<Strands::Head> head_of(Strand& strand, Lane lane);
  void unlist(Strand& strand, Lane lane);
  void relist(Strand& strand, Lane lane);
  // Puts the key into the order of the lane or takes it out, as it has jobs to give or not.
  void refresh(FairKey& key, Lane lane);
  Strand* ready_strand(FairKey& key, Lane lane) const;
  void count_pending(FairKey& key, std::int64_t more);
  bool is_plain(const Strand& strand) const;
  void gained_fresh(Strand& strand, std::uint64_t jobs);
  // A key that may be among the top ones.
  struct Candidate {
    std::string_view name;
    const FairKey* key{};  // null: it has no jobs
    std::uint64_t delivered{};
    std::uint64_t jobs{};  // pending, or delivered lately
  };
  std::vector<Candidate> top_keys(const DeliveryWindow::Sum& window);
  // After a job has left it.
  void lost_job(Strand& strand, Lane lane);
  template <class Erase>
  bool erase_fresh_if(Strand& strand, Seq seq, const Erase& erase);
  // It waits for no token and keeps none from others.
  void leave_throttle(Strand& strand, Lane lane);
  // Puts the strand in line if its next job needs a token that is not there.
  bool waits_for_token(Strand& strand, Lane lane, Timestamp now);
  void set_aside(FairKey& key);

  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const;
    std::size_t operator()(const std::unique_ptr<FairKey>& key) const;
  };
  struct KeyEqual {
    using is_transparent = void;
    static std::string_view name(std::string_view name) { return name; }
    static std::string_view name(const std::unique_ptr<FairKey>& key) { return key->name; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return name(a) == name(b);
    }
  };

  const QueueNumber queue_;
  const std::string ns_;
  Throttles& throttles_;
  absl::flat_hash_set<std::unique_ptr<FairKey>, KeyHash, KeyEqual> keys_;
  std::uint32_t next_serial_ = 0;
  FairKey* default_key_ = nullptr;  // that of kDefaultFairnessKey; null: it has no jobs
  FairOrder fresh_order_{Lane::fresh};
  FairOrder retry_order_{Lane::retry};
  // Where keys that are forgotten stood, while that is ahead: one that is served, done and back at
  // once has gained nothing by it. No more than kPlacesMax, and none in a queue without jobs.
  static constexpr std::size_t kPlacesMax = 256;
  absl::flat_hash_map<std::string, std::array<FairTag, 2>> places_;
  absl::flat_hash_set<FairKey*> at_limit_;
  std::uint64_t fresh_size_ = 0;
  std::uint64_t active_ = 0;
  bool closing_ = false;
  SeqSet keyed_fresh_;  // fresh jobs with attributes of their own: to know the oldest
  KeyRanking ranking_;
  DeliveryWindow deliveries_;
  std::unique_ptr<absl::flat_hash_map<const FairKey*, Seq>> restored_weights_;
  RetryTimes retries_;  // those that are due; refers to strands, so it goes first
};

}  // namespace reprise
