// Throttles: buckets of tokens by namespace and key, and the strands that wait for them.
//
// A strand waits in the line of one bucket that has no token for it. Each bucket has a line for
// each queue and lane, so that a token wakes one strand of each and whoever can be served takes it:
// a queue without workers, or a lane that nobody claims from, holds up no other. Within a line
// strands are woken in proportion to their keys' weights, as in FairOrder.
//
// Waking is a hint: a strand that was woken looks again, and waits again if the token is gone. A
// line wakes one strand at a time, the next when that one has been served, however many tokens
// there are: two that were woken together would be served in turn, whatever their weights.
// Invariant: while a bucket has a token, and strands wait in a line of which none is woken that has
// neither taken one nor left, the bucket's wake is due.
// Threads: the engine's only. Time: comes in; never runs backwards.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "engine/fair_key.h"
#include "engine/token_bucket.h"
#include "model/throttle.h"

namespace reprise {

// One of each is needed.
struct ThrottleSet;

class Throttles {
 public:
  struct Bucket;

  Throttles();
  ~Throttles();
  Throttles(const Throttles&) = delete;
  Throttles& operator=(const Throttles&) = delete;

  // --- What operators say.
  void restore(const ThrottleRecord& record);
  // One that is new starts full.
  void set(const Throttle& throttle, Timestamp now);
  // It must be there.
  void unset(const std::string& ns, const std::string& key, Timestamp now);
  std::optional<ThrottleStats> find(const std::string& ns, const std::string& key,
                                    Timestamp now) const;
  // By namespace and key; "": all namespaces.
  std::vector<ThrottleStats> list(const std::string& ns, Timestamp now) const;
  std::size_t count(const std::string& ns) const;
  // Those whose levels have changed since the last call, as they are to be stored.
  std::vector<ThrottleRecord> take_changed();

  // --- Strands. One that names throttle keys is given its set, and gives it back.
  ThrottleSet* acquire(const std::string& ns, const std::vector<std::string>& keys);
  // Null: no strand has it.
  ThrottleSet* find_set(const std::string& ns, const std::vector<std::string>& keys) const;
  void give_back(ThrottleSet& set);

  // A bucket without a token for the next job of the strand; null: each has one.
  Bucket* lacking(const Strand& strand, Lane lane, Timestamp now) const;
  // One token of each.
  void take(Strand& strand, Lane lane, Timestamp now);
  // What was taken for it is there again.
  void refund(const Strand& strand, Timestamp now);
  // It waits for a token of the bucket, which has none for it.
  void park(Strand& strand, Lane lane, Bucket& bucket, Timestamp now);
  // The strand has taken its tokens, and waits again or not: the next of those in line with it.
  void pass_on(const Strand& strand, Lane lane, Timestamp now,
               const std::function<void(Strand&, Lane)>& woken);
  static bool is_parked(const Strand& strand, Lane lane);
  // It has no jobs in the lane any more, or cannot be served for another reason.
  void leave(Strand& strand, Lane lane);

  // --- Time.
  Timestamp next_wake() const { return wakes_.empty() ? kNever : wakes_.begin()->first; }
  // Tells which strands may look again, turn by turn; a bounded number. Then, when they had their
  // chance, settle().
  void wake(Timestamp now, const std::function<void(Strand&, Lane)>& woken);
  void settle(Timestamp now);
  // The same for one queue alone, before wake() comes to it.
  void wake_lines_of(QueueNumber queue, Timestamp now,
                     const std::function<void(Strand&, Lane)>& woken);

 private:
  struct Line;
  using LineKey = std::pair<QueueNumber, Lane>;

  // Views, so that a push that names known keys makes no copies.
  struct NameView {
    std::string_view ns;
    std::string_view key;
  };
  struct Name {
    std::string ns;
    std::string key;
    operator NameView() const { return {ns, key}; }
  };
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(const NameView& name) const;
  };
  struct NameEqual {
    using is_transparent = void;
    bool operator()(const NameView& a, const NameView& b) const {
      return a.ns == b.ns && a.key == b.key;
    }
  };

  Bucket& bucket_of(const std::string& ns, const std::string& key);
  void forget_if_unused(Bucket& bucket);
  static ThrottleStats stats_of(const Bucket& bucket, Timestamp now);
  static LineKey line_key(const Strand& strand, Lane lane);
  Line* line_of(Bucket& bucket, const Strand& strand, Lane lane) const;
  void forget_if_empty(Bucket& bucket, const LineKey& key);
  static bool may_wake(const Bucket& bucket, const Line& line, Timestamp now);
  std::vector<Bucket*> due_buckets(Timestamp now) const;
  void wake_line(Bucket& bucket, const LineKey& key, Timestamp now,
                 const std::function<void(Strand&, Lane)>& woken);
  enum class For : std::uint8_t { token, look };  // a token that comes then, or a look at what is
  void arm(Bucket& bucket, Timestamp at, For what);
  void disarm(Bucket& bucket);
  void arm_for_next_token(Bucket& bucket, Timestamp now);

  absl::flat_hash_map<Name, std::unique_ptr<Bucket>, NameHash, NameEqual> buckets_;
  // Those that are set, by namespace and key.
  std::map<std::string, std::map<std::string, Bucket*>> limited_;
  // By the buckets of its keys, in order.
  absl::flat_hash_map<std::vector<Bucket*>, std::unique_ptr<ThrottleSet>> sets_;
  absl::btree_set<std::pair<Timestamp, std::uint64_t>> wakes_;  // with the bucket's serial
  absl::flat_hash_map<std::uint64_t, Bucket*> by_serial_;       // of those in wakes_
  std::vector<Bucket*> late_;                                   // between wake() and settle()
  absl::flat_hash_set<Bucket*> changed_;
  std::uint64_t next_serial_ = 0;
  Timestamp now_ = Timestamp{};  // as of the last call that said it
};

struct ThrottleSet {
  std::vector<Throttles::Bucket*> buckets;  // sorted by key, each once
  std::uint32_t uses = 0;
};

// How a strand waits for tokens, in each lane by itself.
struct ThrottledStrand {
  struct Wait {
    Throttles::Bucket* bucket = nullptr;  // null: it does not wait
    bool woken = false;                   // it need not wait any longer, and has not looked yet
    FairTag start = 0;
    FairTag finish = 0;  // its place in the line; the weight may have changed since
    std::uint64_t serial = 0;
  };
  ThrottleSet* set = nullptr;
  std::array<Wait, 2> waits;  // index: Lane
};

}  // namespace reprise
