#include "sim/saboteur.h"

#include <algorithm>
#include <array>
#include <variant>

namespace reprise::sim {
namespace {

class RepeatingRandom final : public Random {
 public:
  std::uint64_t next_u64() override { return ++calls_ % 7; }

 private:
  std::uint64_t calls_ = 0;
};

}  // namespace

std::string_view sabotage_name(Sabotage sabotage) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "None",      "ForgetErase", "ForgetState", "ForgetKey",   "ForgetServer", "ForgetTotals",
      "LoseBatch", "IgnoreSync",  "TearBatch",   "SettleEarly", "RepeatSecrets"};
  return kNames[static_cast<std::size_t>(sabotage)];
}

std::unique_ptr<Random> Saboteur::make_random(std::uint64_t seed) const {
  if (sabotage_ == Sabotage::repeat_secrets) return std::make_unique<RepeatingRandom>();
  return std::make_unique<SeededRandom>(seed);
}

// Bugs of this kind hide: most of the time all goes well.
template <class Kind>
void Saboteur::forget_one(ChangeSet& changes) {
  if (!dice_.percent(20)) return;
  const auto found = std::ranges::find_if(
      changes.changes, [](const Change& change) { return std::holds_alternative<Kind>(change); });
  if (found != changes.changes.end()) changes.changes.erase(found);
}

void Saboteur::tamper(ChangeSet& changes, storage::Durability& durability) {
  switch (sabotage_) {
    case Sabotage::forget_erase:
      return forget_one<EraseJob>(changes);
    case Sabotage::forget_state:
      return forget_one<PutState>(changes);
    case Sabotage::forget_key:
      return forget_one<PutKey>(changes);
    case Sabotage::forget_server:
      return forget_one<PutServer>(changes);
    case Sabotage::forget_totals:
      return forget_one<PutTotals>(changes);
    case Sabotage::lose_batch:
      if (dice_.percent(10)) changes = {};
      return;
    case Sabotage::ignore_sync:
      durability = storage::Durability::buffered;
      return;
    case Sabotage::none:
    case Sabotage::tear_batch:
    case Sabotage::settle_early:
    case Sabotage::repeat_secrets:
      return;
  }
}

ChangeSet Saboteur::torn_half(const ChangeSet& changes) const {
  if (sabotage_ != Sabotage::tear_batch) return {};
  ChangeSet half = changes;
  half.changes.resize(half.changes.size() / 2);
  return half;
}

}  // namespace reprise::sim
