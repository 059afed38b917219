// Lanes: which pending job is next.
// Fresh jobs are ordered by priority, then push order; retries by their retry time. Both orders
// follow from what is stored, so a restart rebuilds them exactly.
// Memory: a bit to 3 bytes per fresh job (see SeqSet), a little over 32 bytes per retry.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "engine/fair_key.h"
#include "engine/seq_set.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

// Retries by their retry time, with how often each has failed: those that wait for it, or those
// that are due.
class RetryTimes {
 public:
  // False: it was there already.
  bool insert(TimedSeq job, std::uint32_t failures, StrandRef strand);
  // Its strand; none: it was not there.
  StrandRef erase(TimedSeq job);
  // Where only its seq is known: looks through all of them.
  std::optional<Timestamp> time_of(Seq seq) const;
  bool empty() const { return jobs_.empty(); }
  std::uint64_t size() const { return jobs_.size(); }
  // The one whose time is, or was, the earliest. Must not be empty.
  TimedSeq front() const { return jobs_.begin()->first; }
  const RetryCounts& counts() const { return counts_; }
  // Takes out the first. Must not be empty.
  struct Retry {
    TimedSeq job;
    std::uint32_t failures{};  // or 10, when there were more
    StrandRef strand;
  };
  Retry pop_front();

 private:
  struct Waiting {
    std::uint8_t bucket{};  // its place in counts_
    StrandRef strand;
  };

  absl::btree_map<TimedSeq, Waiting> jobs_;
  RetryCounts counts_{};
};

// Fresh jobs of one strand.
class FreshLane {
 public:
  void insert(Priority priority, Seq seq);
  // In ascending order.
  void insert_all(Priority priority, std::span<const Seq> seqs);
  bool erase(Priority priority, Seq seq);
  // Where its priority is not known: looks through all of them.
  bool erase(Seq seq);
  bool empty() const { return size_ == 0; }
  std::uint64_t size() const { return size_; }
  // The next job. Must not be empty.
  std::pair<Priority, Seq> front() const;
  // The job pushed longest ago, whatever its priority. Must not be empty.
  Seq oldest() const;
  // Jobs that are more urgent than this.
  std::uint64_t count_below(Priority priority) const;

 private:
  using ByPriority = std::map<Priority, SeqSet>;

  bool erase(ByPriority::iterator place, Seq seq);

  ByPriority by_priority_;  // no empty sets
  std::uint64_t size_ = 0;
};

// Shares claims between the lanes while both have work. Credit is carried, so the share is exact
// over any run of claims, of size 1 too; it is counted in whole parts, so it never drifts.
class LaneShare {
 public:
  // Which lane the next job comes from, when both have one. The share is the queue's at that
  // moment; credit is kept when it changes.
  Lane next(std::uint32_t retry_share_ppm) {
    credit_ += retry_share_ppm;
    if (credit_ < kWholeShare) return Lane::fresh;
    credit_ -= kWholeShare;
    return Lane::retry;
  }
  // 0 to 1.
  double credit() const { return static_cast<double>(credit_) / kWholeShare; }

 private:
  std::uint32_t credit_ = 0;  // below kWholeShare
};

}  // namespace reprise
