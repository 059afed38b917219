// A simulation that never fails proves nothing until it has been seen to fail, and to have met what
// it is meant to meet.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/saboteur.h"
#include "sim/simulation.h"

namespace reprise::sim {
namespace {

constexpr std::uint64_t kSeeds = 1000;

class PlantedBug : public testing::TestWithParam<Sabotage> {};

TEST_P(PlantedBug, IsFound) {
  std::string violation;
  std::uint64_t seed = 0;
  while (violation.empty() && seed < kSeeds) {
    violation = simulate({.seed = ++seed, .sabotage = GetParam()}).violation;
  }
  ASSERT_NE(violation, "") << "not found with " << kSeeds << " seeds";
  RecordProperty("seed", std::to_string(seed));
  RecordProperty("violation", violation);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedBug,
    testing::Values(Sabotage::forget_erase, Sabotage::forget_state, Sabotage::forget_key,
                    Sabotage::forget_server, Sabotage::forget_totals, Sabotage::lose_batch,
                    Sabotage::ignore_sync, Sabotage::tear_batch, Sabotage::settle_early,
                    Sabotage::repeat_secrets, Sabotage::keep_failures, Sabotage::leave_letter,
                    Sabotage::forget_ending, Sabotage::forget_kept, Sabotage::forget_webhook,
                    Sabotage::forget_step, Sabotage::forget_audit, Sabotage::lose_credit,
                    Sabotage::swap_verdicts, Sabotage::forget_words, Sabotage::forget_verdict,
                    Sabotage::forget_config, Sabotage::hide_errors, Sabotage::forget_level,
                    Sabotage::lose_wake, Sabotage::spend_on_dead, Sabotage::take_one_token,
                    Sabotage::forget_undecided, Sabotage::ignore_weights,
                    Sabotage::keep_expired_leases, Sabotage::count_spared_failures),
    [](const auto& planted) { return std::string(sabotage_name(planted.param)); });

std::map<std::string, std::uint64_t> happened_on(DiskKind disk, std::uint64_t seeds) {
  std::map<std::string, std::uint64_t> happened;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto result = simulate({.seed = seed, .disk = disk});
    EXPECT_EQ(result.violation, "") << "seed " << seed;
    for (const auto& [what, times] : result.happened) happened[what] += times;
  }
  return happened;
}

TEST(Simulation, MeetsDisksThatFail) {
  auto happened = happened_on(DiskKind::durable, 30);
  for (const char* what : {"commit failed", "killed", "power cut", "unsynced commits lost"}) {
    EXPECT_GT(happened[what], 0U) << what;
  }
}

TEST(Simulation, MeetsWhatItIsMeantToMeet) {
  auto happened = happened_on(DiskKind::memory, kSeeds);
  for (const char* what : {
           "push",
           "duplicate push",
           "push refused: error payload_too_large",
           "push refused: error queue_full",
           "push refused: error queue_bytes_full",
           "push refused: error disk_full",
           "fresh job given",
           "retry given",
           "claim answered at once",
           "claim waits",
           "waiting claim got jobs",
           "waiting claim ended empty",
           "waiting claim told of its queue's end",
           "ack",
           "ack refused: error lease_lost",
           "ack refused: error invalid_lease_token",
           "fail",
           "fail refused: error lease_lost",
           "release",
           "release refused: error lease_lost",
           "extend",
           "extend refused: error lease_lost",
           "dropped while scheduled",
           "dropped while pending",
           "dropped while active",
           "dropped while failed",
           "dropped while dead",
           "dropped while completed",
           "retry by hand",
           "retry by hand refused: error wrong_status",
           "retry by hand refused: error job_not_found",
           "retry by hand refused: error queue_not_found",
           "retry by hand refused: error disk_full",
           "purge",
           "purge refused: error wrong_status",
           "put queue refused: error invalid_field",
           "retry by filter did some",
           "retry by filter done",
           "retry by filter failed",
           "purge by filter did some",
           "purge by filter done",
           "operation cancelled",
           "let go of ended jobs",
           "ended jobs kept after all",
           "webhook told",
           "dead: max_attempts",
           "dead: final",
           "dead: lease_expired",
           "dead: worker_lost",
           "dead: expired",
           "dead: hook",
           "dead: hook_error",
           "dead in a hook's own words",
           "push waits for its hook",
           "push refused: error hook_rejected",
           "push refused: error queue_not_found",
           "fail waits for its hook",
           "hook asked",
           "hook called back",
           "hook answered",
           "hook failed: error",
           "hook failed: timeout",
           "breaker open",
           "breaker on trial",
           "config unset",
           "config unset refused",
           "throttle set",
           "throttle unset",
           "outage",
           "outage on trial",
           "failure spared",
           "queue deleted",
           "killed",
           "power cut",
           "unsynced commits lost",
       }) {
    EXPECT_GT(happened[what], 0U) << what;
  }
}

// Replaying a seed is only worth something if it replays.
TEST(Simulation, ASeedRepeatsExactly) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const DiskKind disk : {DiskKind::memory, DiskKind::durable}) {
      const auto first = simulate({.seed = seed, .disk = disk});
      const auto second = simulate({.seed = seed, .disk = disk});
      EXPECT_EQ(first.happened, second.happened) << seed;
    }
  }
}

}  // namespace
}  // namespace reprise::sim
