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
  static constexpr std::array<std::string_view, 19> kNames = {
      "None",          "ForgetErase",  "ForgetState", "ForgetKey",    "ForgetServer",
      "ForgetTotals",  "LoseBatch",    "IgnoreSync",  "TearBatch",    "SettleEarly",
      "RepeatSecrets", "KeepFailures", "LeaveLetter", "ForgetEnding", "ForgetKept",
      "ForgetWebhook", "ForgetStep",   "ForgetAudit", "LoseCredit"};
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

void Saboteur::keep_failures(ChangeSet& changes) {
  for (Change& change : changes.changes) {
    auto* put = std::get_if<PutState>(&change);
    if (put == nullptr || put->state->generation == 1) continue;
    if (put->state->status != JobStatus::pending || put->state->failures > 0) continue;
    auto state = std::make_shared<JobState>(*put->state);
    state->failures = 1;
    put->state = std::move(state);
  }
}

void Saboteur::leave_letter(ChangeSet& changes) {
  for (auto at = changes.changes.begin(); at != changes.changes.end(); ++at) {
    const auto* erase = std::get_if<EraseJob>(&*at);
    const bool moves = erase != nullptr && std::ranges::any_of(changes.changes, [&](auto& change) {
                         const auto* put = std::get_if<PutJob>(&change);
                         return put != nullptr && put->job.seq == erase->job.seq &&
                                put->job.queue != erase->job.queue;
                       });
    if (!moves) continue;
    changes.changes.erase(at);
    return;
  }
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
    case Sabotage::keep_failures:
      return keep_failures(changes);
    case Sabotage::leave_letter:
      return leave_letter(changes);
    case Sabotage::forget_ending:
      for (Change& change : changes.changes) {
        if (auto* erase = std::get_if<EraseDead>(&change)) erase->ended_at = {};
      }
      return;
    case Sabotage::forget_kept:
      for (Change& change : changes.changes) {
        if (auto* complete = std::get_if<Complete>(&change)) change = EraseJob{complete->job};
      }
      return;
    case Sabotage::forget_webhook:
      return forget_one<PutWebhook>(changes);
    case Sabotage::forget_step:
      return forget_one<PutOperation>(changes);
    case Sabotage::forget_audit:
      return forget_one<PutAudit>(changes);
    case Sabotage::none:
    case Sabotage::lose_credit:
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
