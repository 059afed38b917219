// Lanes: which pending job is next.
// Fresh jobs are ordered by priority, then push order; retries by their retry time. Both orders
// follow from what is stored, so a restart rebuilds them exactly.
// Memory: a bit to 3 bytes per fresh job (see SeqSet), a little over 16 bytes per retry.
#pragma once

#include <absl/container/btree_set.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "engine/seq_set.h"
#include "model/job.h"

namespace reprise {

// A job and the time it waits for, or waited for.
struct TimedSeq {
  Timestamp at;
  Seq seq{};
  friend auto operator<=>(const TimedSeq&, const TimedSeq&) = default;
};
using TimedSeqs = absl::btree_set<TimedSeq>;

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
  // Which lane the next job comes from, when both have one.
  Lane next() {
    credit_ += kRetryParts;
    if (credit_ < kParts) return Lane::fresh;
    credit_ -= kParts;
    return Lane::retry;
  }

 private:
  static constexpr std::uint32_t kParts = 5;
  static constexpr std::uint32_t kRetryParts = 1;  // one job of five
  std::uint32_t credit_ = 0;
};

}  // namespace reprise
