#include "engine/fair_order.h"

#include <algorithm>

#include "base/check.h"
#include "engine/fair_key.h"

namespace reprise {
namespace {

// To 2^-6 of a turn: no more than some dozens of different ones are ahead at a time.
constexpr FairTag kGoneStep = kFairTurn >> 6;
constexpr FairTag rounded(FairTag tag) { return tag / kGoneStep * kGoneStep; }

}  // namespace

bool FairOrder::Before::operator()(const Entry& a, const Entry& b) const {
  if (a.tag != b.tag) return is_before(a.tag, b.tag);
  if (a.key->serial != b.key->serial) return a.key->serial < b.key->serial;
  return a.key < b.key;  // serials wrap around
}

FairTag& FairOrder::start_of(FairKey& key) const {
  return key.starts[static_cast<std::size_t>(lane_)];
}

FairPlace& FairOrder::place_of(FairKey& key) const {
  return key.places[static_cast<std::size_t>(lane_)];
}

void FairOrder::add(FairKey& key) {
  REPRISE_CHECK(place_of(key) == FairPlace::neither);
  FairTag& start = start_of(key);
  start = fair_start(start, now_, fair_cost(key.weight));
  const bool is_back = is_ahead(start);
  if (is_back) count_no_longer(start, key.weight);
  weight_ += key.weight;
  enter(key, is_back);
}

void FairOrder::remove(FairKey& key) {
  leave(key);
  weight_ -= key.weight;
  if (size() == 0) {
    // Nobody is left to be ahead of.
    gone_.clear();
    weight_ = 0;
  } else if (is_ahead(start_of(key))) {
    count_until(start_of(key), key.weight);
  }
}

bool FairOrder::suspend(FairKey& key, std::uint32_t new_weight) {
  const bool was_in = contains(key);
  if (was_in) {
    leave(key);
    weight_ -= key.weight;
  }
  FairTag& start = start_of(key);
  const FairTag lead = start - now_;
  if (is_ahead(start) && lead <= fair_cost(key.weight))
    start = now_ + lead * key.weight / new_weight;
  return was_in;
}

void FairOrder::resume(FairKey& key, bool was_in) {
  if (!was_in) return;
  FairTag& start = start_of(key);
  start = fair_start(start, now_, fair_cost(key.weight));
  weight_ += key.weight;
  enter(key, false);
}

bool FairOrder::contains(const FairKey& key) const {
  return key.places[static_cast<std::size_t>(lane_)] != FairPlace::neither;
}

FairKey* FairOrder::next() {
  if (eligible_.empty()) {
    if (waiting_.empty()) return nullptr;
    // Those that have become eligible meanwhile are still among the waiting: time must not run
    // back.
    if (is_before(now_, waiting_.begin()->tag)) {
      now_ = waiting_.begin()->tag;
      remainder_ = 0;
      forget_gone();
    }
  }
  while (!waiting_.empty() && !is_before(now_, waiting_.begin()->tag)) {
    FairKey& key = *waiting_.begin()->key;
    const bool is_back = place_of(key) == FairPlace::waiting_back;
    leave(key);
    enter(key, is_back);
  }
  return eligible_.begin()->key;
}

void FairOrder::charge(FairKey& key) {
  if (size() == 1) return;  // nobody to be compared with
  leave(key);
  start_of(key) += fair_cost(key.weight);
  advance(kFairTurn);
  enter(key, false);
}

void FairOrder::advance(std::uint64_t parts) {
  remainder_ += parts;
  now_ += remainder_ / weight_;
  remainder_ %= weight_;
  forget_gone();
}

void FairOrder::count_until(FairTag tag, std::uint32_t weight) {
  gone_[rounded(tag)] += weight;
  weight_ += weight;
}

void FairOrder::count_no_longer(FairTag tag, std::uint32_t weight) {
  const auto found = gone_.find(rounded(tag));
  if (found == gone_.end()) return;
  const std::uint64_t less = std::min<std::uint64_t>(found->second, weight);
  weight_ -= less;
  found->second -= less;
  if (found->second == 0) gone_.erase(found);
}

void FairOrder::forget_gone() {
  while (!gone_.empty() && !is_before(now_, gone_.begin()->first)) {
    weight_ -= gone_.begin()->second;
    gone_.erase(gone_.begin());
  }
}

void FairOrder::enter(FairKey& key, bool is_back) {
  const FairTag start = start_of(key);
  if (is_before(now_, start)) {
    place_of(key) = is_back ? FairPlace::waiting_back : FairPlace::waiting;
    waiting_.insert({start, &key});
  } else {
    place_of(key) = is_back ? FairPlace::eligible_back : FairPlace::eligible;
    eligible_.insert({is_back ? start : start + fair_cost(key.weight), &key});
  }
}

void FairOrder::leave(FairKey& key) {
  const FairTag start = start_of(key);
  const FairPlace place = place_of(key);
  const std::size_t erased =
      place == FairPlace::waiting || place == FairPlace::waiting_back
          ? waiting_.erase({start, &key})
          : eligible_.erase(
                {place == FairPlace::eligible_back ? start : start + fair_cost(key.weight), &key});
  REPRISE_CHECK(erased == 1);
  place_of(key) = FairPlace::neither;
}

}  // namespace reprise
