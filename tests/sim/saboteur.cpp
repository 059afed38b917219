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

void fill_up(ThrottleRecord& record) {
  record.level.parts =
      static_cast<std::uint64_t>(record.throttle.rate.per.count()) * record.throttle.burst;
}

}  // namespace

std::string_view sabotage_name(Sabotage sabotage) {
  static constexpr std::array<std::string_view, 32> kNames = {"None",
                                                              "ForgetErase",
                                                              "ForgetState",
                                                              "ForgetKey",
                                                              "ForgetServer",
                                                              "ForgetTotals",
                                                              "LoseBatch",
                                                              "IgnoreSync",
                                                              "TearBatch",
                                                              "SettleEarly",
                                                              "RepeatSecrets",
                                                              "KeepFailures",
                                                              "LeaveLetter",
                                                              "ForgetEnding",
                                                              "ForgetKept",
                                                              "ForgetWebhook",
                                                              "ForgetStep",
                                                              "ForgetAudit",
                                                              "LoseCredit",
                                                              "SwapVerdicts",
                                                              "ForgetWords",
                                                              "ForgetVerdict",
                                                              "ForgetConfig",
                                                              "HideErrors",
                                                              "ForgetLevel",
                                                              "LoseWake",
                                                              "SpendOnDead",
                                                              "TakeOneToken",
                                                              "ForgetUndecided",
                                                              "IgnoreWeights",
                                                              "KeepExpiredLeases",
                                                              "CountSparedFailures"};
  return kNames[static_cast<std::size_t>(sabotage)];
}

std::unique_ptr<Random> Saboteur::make_random(std::uint64_t seed) const {
  if (sabotage_ == Sabotage::repeat_secrets) return std::make_unique<RepeatingRandom>();
  return std::make_unique<SeededRandom>(seed);
}

bool Saboteur::swallows_tick(const Engine& engine, Timestamp now) const {
  if (sabotage_ != Sabotage::lose_wake) return false;
  return std::ranges::any_of(engine.list_throttles("", now), [](const ThrottleStats& stats) {
    return stats.waiting > 0 && stats.tokens >= 1;
  });
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

void Saboteur::forget_words(ChangeSet& changes) {
  for (Change& change : changes.changes) {
    auto* bury = std::get_if<Bury>(&change);
    if (bury == nullptr) continue;
    auto state = std::make_shared<JobState>(*bury->dead.state);
    state->death_note.clear();
    bury->dead.state = std::move(state);
  }
}

void Saboteur::forget_verdict(ChangeSet& changes) {
  for (Change& change : changes.changes) {
    auto* put = std::get_if<PutJob>(&change);
    if (put == nullptr) continue;
    auto record = std::make_shared<JobRecord>(*put->record);
    record->scheduling.weight = 1;
    put->record = std::move(record);
  }
}

void Saboteur::tamper(std::vector<HookResult>& results) const {
  if (sabotage_ == Sabotage::swap_verdicts && results.size() > 1 &&
      results[0].outcome.index() == results[1].outcome.index()) {
    std::swap(results[0].outcome, results[1].outcome);
  }
  if (sabotage_ != Sabotage::hide_errors) return;
  for (HookResult& result : results) {
    if (std::holds_alternative<HookFailure>(result.outcome)) result.outcome = FailureVerdict{};
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
    case Sabotage::forget_words:
      return forget_words(changes);
    case Sabotage::forget_verdict:
      return forget_verdict(changes);
    case Sabotage::forget_config:
      return forget_one<PutConfig>(changes);
    case Sabotage::forget_level:
      for (Change& change : changes.changes) {
        auto* put = std::get_if<PutThrottle>(&change);
        if (put == nullptr) continue;
        ThrottleRecord full = *put->record;
        fill_up(full);
        put->record = boxed(std::move(full));
      }
      return;
    case Sabotage::none:
    case Sabotage::lose_wake:
    case Sabotage::spend_on_dead:
    case Sabotage::take_one_token:
    case Sabotage::forget_undecided:
    case Sabotage::ignore_weights:
    case Sabotage::keep_expired_leases:
    case Sabotage::count_spared_failures:
    case Sabotage::swap_verdicts:
    case Sabotage::hide_errors:
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
