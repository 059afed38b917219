// FairKey and Strand: the jobs of a queue that have not ended, as scheduling sees them.
//
//   queue ─▶ FairKey, one per fairness key ─▶ Strand, one per set of throttle keys ─▶ jobs, in
//   order
//
// Jobs of one strand keep their order and wait together; strands of one key do not hold each other
// up. Whoever has something to do with a job (a lane, a timer, a lease) refers to its strand. When
// nobody does, it is gone, and its key with its last strand: what is idle takes no memory.
// Threads: the engine's only.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/ids.h"
#include "base/time.h"
#include "engine/fair_order.h"
#include "engine/job_line.h"
#include "model/job.h"

namespace reprise {

class PendingJobs;
struct FairKey;
struct ThrottledStrand;

// A job and the time it waits for, or waited for.
struct TimedSeq {
  Timestamp at;
  Seq seq{};
  friend auto operator<=>(const TimedSeq&, const TimedSeq&) = default;
};
using TimedSeqs = absl::btree_set<TimedSeq>;

struct Strand {
  explicit Strand(FairKey& its_key);
  ~Strand();
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  bool has_jobs(Lane lane) const { return lane == Lane::fresh ? !fresh.empty() : retry != nullptr; }

  FairKey& key;
  JobLine fresh;
  std::unique_ptr<TimedSeqs> retry;            // null: none
  std::unique_ptr<ThrottledStrand> throttled;  // null: its jobs name no throttle keys
  std::uint32_t uses = 0;                      // jobs in `fresh`, and StrandRefs
};

// Keeps a strand while somebody has to do with one of its jobs.
class StrandRef {
 public:
  StrandRef() = default;
  explicit StrandRef(Strand& strand) : strand_(&strand) { ++strand_->uses; }
  StrandRef(const StrandRef& other) : strand_(other.strand_) {
    if (strand_ != nullptr) ++strand_->uses;
  }
  StrandRef(StrandRef&& other) noexcept : strand_(std::exchange(other.strand_, nullptr)) {}
  StrandRef& operator=(StrandRef other) noexcept {
    std::swap(strand_, other.strand_);
    return *this;
  }
  ~StrandRef();

  explicit operator bool() const { return strand_ != nullptr; }
  Strand& operator*() const { return *strand_; }
  Strand* operator->() const { return strand_; }

 private:
  Strand* strand_ = nullptr;
};

// The strands of a key that has more than one.
struct Strands {
  // What decides between the heads of strands: priority, or retry time; then push order.
  struct Head {
    std::int64_t first{};
    Seq seq{};
    Strand* strand{};
    friend bool operator<(const Head& a, const Head& b) {
      return std::pair(a.first, a.seq) < std::pair(b.first, b.seq);
    }
  };
  absl::flat_hash_map<const void*, std::unique_ptr<Strand>> others;  // by their throttle set
  // Index: Lane. The heads of those that wait for no token.
  std::array<absl::btree_set<Head>, 2> heads;
  // Of them, those that were woken by one and may not have taken it; maybe some that have.
  std::array<absl::flat_hash_set<Strand*>, 2> woken;
};

struct FairKey {
  FairKey(PendingJobs& owner, std::string called, std::uint32_t number)
      : jobs(owner), name(std::move(called)), serial(number), first(*this) {}

  Strand* find_strand(const void* throttle_set);
  // Of all its strands, to be changed by nobody meanwhile.
  template <class Visit>
  void visit_strands(const Visit& visit);

  PendingJobs& jobs;
  const std::string name;
  const std::uint32_t serial;  // in the order they came to the queue
  std::uint32_t weight = 1;
  std::uint32_t pending = 0;  // in both lanes
  std::uint32_t active = 0;   // leased
  // Where it stands in the order of each lane. Index: Lane. Apart, as a struct would take twice the
  // room, and there may be a hundred thousand keys.
  std::array<FairTag, 2> starts{};
  std::array<FairPlace, 2> places{};
  bool at_limit = false;          // of concurrency_per_key, so it is in neither order
  std::uint8_t rank_size = 0;     // KeyRanking's
  std::uint32_t rank_place = 0;   // the same
  Strand first;                   // of jobs with any one set of throttle keys
  std::unique_ptr<Strands> more;  // null: there is no other
};

template <class Visit>
void FairKey::visit_strands(const Visit& visit) {
  visit(first);
  if (!more) return;
  for (const auto& [set, strand] : more->others) visit(*strand);
}

}  // namespace reprise
