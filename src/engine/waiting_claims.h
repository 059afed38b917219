// WaitingClaims: claims that found nothing and wait in line, first come first served among those
// that the job's lane suits.
// Invariants: by_id_, deadlines_ and the lines hold the same claims.
// Threads: the engine's only. Time: never read here.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "engine/commands.h"

namespace reprise {

struct WaitingClaim {
  ClaimId id{};
  QueueNumber queue{};
  Timestamp deadline;
  ClaimCommand command;
  std::vector<QueueNumber> also;  // it waits for jobs of these, too
};

class WaitingClaims {
 public:
  void add(WaitingClaim claim);
  // Takes it out of the line; nullopt when it is not in it (any more).
  std::optional<WaitingClaim> remove(ClaimId id);
  std::optional<WaitingClaim> take_expired(Timestamp now);
  // The queue is gone: those that waited for it only.
  std::vector<WaitingClaim> take_all_of(QueueNumber queue);
  std::vector<WaitingClaim> take_all();

  // The claim that is first in line for a job of one of these lanes. Valid until the next change.
  const WaitingClaim* first(QueueNumber queue, bool fresh_waits, bool retry_waits) const;

  bool has_any(QueueNumber queue) const { return lines_.contains(queue); }

  Timestamp next_deadline() const;  // kNever when nobody waits
  std::size_t size() const { return by_id_.size(); }
  std::size_t count_of(QueueNumber queue) const;

 private:
  using Line = std::map<std::uint64_t, ClaimId>;  // by arrival
  static constexpr std::size_t kChoices = 3;      // LaneChoice
  struct Entry {
    std::uint64_t arrival{};
    WaitingClaim claim;
  };

  void line_up(QueueNumber queue, const Entry& entry);
  void leave(QueueNumber queue, const Entry& entry);

  absl::flat_hash_map<ClaimId, Entry> by_id_;
  absl::btree_set<std::pair<Timestamp, ClaimId>> deadlines_;
  absl::flat_hash_map<QueueNumber, std::array<Line, kChoices>> lines_;
  std::uint64_t next_arrival_ = 0;
};

}  // namespace reprise
