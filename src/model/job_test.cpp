#include "model/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kNow{1000s};

TEST(JobStatusName, IsWhatClientsReadAndReadsBack) {
  const std::vector<std::pair<JobStatus, std::string_view>> names = {
      {JobStatus::scheduled, "scheduled"}, {JobStatus::pending, "pending"},
      {JobStatus::active, "active"},       {JobStatus::failed, "failed"},
      {JobStatus::dead, "dead"},           {JobStatus::completed, "completed"}};
  ASSERT_EQ(names.size(), kJobStatusCount);
  for (const auto& [status, name] : names) {
    EXPECT_EQ(status_name(status), name);
    EXPECT_EQ(status_from_name(name), status);
  }
}

TEST(JobStatusName, NothingElseIsAStatus) {
  for (const std::string_view text : {"", "Pending", "pending ", "lost", "pend"}) {
    EXPECT_EQ(status_from_name(text), std::nullopt) << text;
  }
}

TEST(JobWords, AreThoseOfTheApi) {
  EXPECT_EQ(lane_name(Lane::fresh), "fresh");
  EXPECT_EQ(lane_name(Lane::retry), "retry");
  EXPECT_EQ(outcome_name(AttemptOutcome::failed), "failed");
  EXPECT_EQ(outcome_name(AttemptOutcome::lease_expired), "lease_expired");
  EXPECT_EQ(outcome_name(AttemptOutcome::released), "released");
  EXPECT_EQ(death_reason_name(DeathReason::max_attempts), "max_attempts");
  EXPECT_EQ(death_reason_name(DeathReason::final), "final");
  EXPECT_EQ(death_reason_name(DeathReason::lease_expired), "lease_expired");
  EXPECT_EQ(death_reason_name(DeathReason::expired), "expired");
  EXPECT_EQ(death_reason_name(DeathReason::corrupt), "corrupt");
  EXPECT_EQ(decided_by_name(DecidedBy::policy), "policy");
  EXPECT_EQ(decided_by_name(DecidedBy::client), "client");
}

TEST(JobRecord, ByteSizeCountsPayloadKeyAndHeaders) {
  EXPECT_EQ(JobRecord{}.byte_size(), 0U);
  const JobRecord record{
      .key = "key", .headers = {{"a", "12"}, {"bb", ""}}, .payload = std::string(10, 'x')};
  EXPECT_EQ(record.byte_size(), 3U + 3U + 2U + 10U);
}

TEST(JobState, LaneFollowsFailures) {
  EXPECT_EQ(JobState{}.lane(), Lane::fresh);
  EXPECT_EQ(JobState{.attempts = 5}.lane(), Lane::fresh) << "releases are no failures";
  EXPECT_EQ(JobState{.failures = 1}.lane(), Lane::retry);
}

TEST(EffectiveStatus, OfAJobWithoutAStateIsPending) {
  EXPECT_EQ(effective_status(nullptr, kNow), JobStatus::pending);
}

struct EffectiveStatusCase {
  JobStatus stored;
  Duration due_in;
  JobStatus seen;
};

class EffectiveStatus : public testing::TestWithParam<EffectiveStatusCase> {};

TEST_P(EffectiveStatus, ADelayThatHasPassedNeedsNoWrite) {
  const auto& [stored, due_in, seen] = GetParam();
  const JobState state{.status = stored, .due = kNow + due_in};
  EXPECT_EQ(effective_status(&state, kNow), seen);
}

INSTANTIATE_TEST_SUITE_P(
    Waiting, EffectiveStatus,
    testing::Values(EffectiveStatusCase{JobStatus::scheduled, 1us, JobStatus::scheduled},
                    EffectiveStatusCase{JobStatus::scheduled, 0us, JobStatus::pending},
                    EffectiveStatusCase{JobStatus::scheduled, -1us, JobStatus::pending},
                    EffectiveStatusCase{JobStatus::failed, 1us, JobStatus::failed},
                    EffectiveStatusCase{JobStatus::failed, 0us, JobStatus::pending}));

INSTANTIATE_TEST_SUITE_P(
    NotWaiting, EffectiveStatus,
    testing::Values(EffectiveStatusCase{JobStatus::pending, 1us, JobStatus::pending},
                    EffectiveStatusCase{JobStatus::active, -1us, JobStatus::active},
                    EffectiveStatusCase{JobStatus::dead, -1us, JobStatus::dead},
                    EffectiveStatusCase{JobStatus::completed, -1us, JobStatus::completed}));

}  // namespace
}  // namespace reprise
