// FairOrder: which of the keys of a lane is served next, in proportion to their weights.
//
// Worst-case fair queueing (WF2Q+). There is a virtual time in which every key would be served
// continuously: it advances by 1/W for each job, W being the weight of all keys in the order. A
// key's next job may not begin before its start tag, and should be done by its finish tag, 1/weight
// later; of those that may begin, the one that should be done first is next. So while the keys stay
// the same, none is more than one job ahead of or behind its exact share, where deficit round robin
// is exact only over whole rounds: with weights 1000 and 1 it gives out a thousand jobs in a row.
//
// A key that comes starts at the present virtual time, so it waits for one turn of the others, and
// has no claim to what it missed. A key that has left while it was ahead counts until the time of
// its tag, since it has had that much; if it comes back before, it is next at that time.
//
// Tags are in 2^-40 of a turn and wrap around: all that are compared are within a few turns.
// Memory: 16 bytes for each key in it. Time: logarithmic. Ties go by the keys' serials, so that the
// order does not depend on addresses.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <cstdint>

#include "model/job.h"

namespace reprise {

struct FairKey;

using FairTag = std::uint64_t;
inline constexpr FairTag kFairTurn = FairTag{1} << 40;
constexpr FairTag fair_cost(std::uint32_t weight) { return kFairTurn / weight; }
// Which of two tags comes first.
constexpr bool is_before(FairTag a, FairTag b) { return static_cast<std::int64_t>(a - b) < 0; }
// Where to begin at `now` with a tag from earlier: it holds if it is ahead, by no more than one
// job. Anything else is from long ago.
constexpr FairTag fair_start(FairTag earlier, FairTag now, FairTag cost) {
  return earlier - now <= cost ? earlier : now;
}

// Whether a key is in the order, and where: among those whose start is ahead, or the others.
enum class FairPlace : std::uint8_t {
  neither,
  waiting,
  eligible,
  // The same of one that came back while it was ahead: it is next at its start.
  waiting_back,
  eligible_back,
};

class FairOrder {
 public:
  // `now` is the virtual time at which it begins; it may be any.
  explicit FairOrder(Lane lane, FairTag now = 0) : lane_(lane), now_(now) {}
  FairOrder(const FairOrder&) = delete;
  FairOrder& operator=(const FairOrder&) = delete;

  // The key must not be in it; its weight must not change while it is.
  void add(FairKey& key);
  void remove(FairKey& key);
  // Before the weight of a key changes, whether or not it is in it; then resume(), with what this
  // has returned. What it is ahead by, in jobs, stays the same.
  bool suspend(FairKey& key, std::uint32_t new_weight);
  void resume(FairKey& key, bool was_in);
  bool contains(const FairKey& key) const;
  // The key that is served next; null: there is none.
  FairKey* next();
  // Whether a key that is not in it would have to wait for its turn if it came now.
  bool is_ahead(FairTag start) const { return is_before(now_, start); }
  // The key, which is in it, was given a job.
  void charge(FairKey& key);
  std::size_t size() const { return waiting_.size() + eligible_.size(); }

 private:
  struct Entry {
    FairTag tag{};
    FairKey* key{};
  };
  struct Before {
    bool operator()(const Entry& a, const Entry& b) const;
  };
  using Entries = absl::btree_set<Entry, Before>;
  struct TagBefore {
    bool operator()(FairTag a, FairTag b) const { return is_before(a, b); }
  };

  FairTag& start_of(FairKey& key) const;
  FairPlace& place_of(FairKey& key) const;
  void enter(FairKey& key, bool is_back);
  void leave(FairKey& key);
  void advance(std::uint64_t parts);
  // Those that have left and still count: up to their tags.
  void count_until(FairTag tag, std::uint32_t weight);
  void count_no_longer(FairTag tag, std::uint32_t weight);
  void forget_gone();

  const Lane lane_;
  FairTag now_;
  std::uint64_t remainder_ = 0;  // of now_, in parts of 1/weight_
  std::uint64_t weight_ = 0;     // of all keys in it, and of gone_
  // Weights of keys that have left and were ahead, by their tags, which are rounded so that there
  // are few.
  absl::btree_map<FairTag, std::uint64_t, TagBefore> gone_;
  Entries waiting_;   // by start: it is still ahead of now
  Entries eligible_;  // by finish
};

}  // namespace reprise
