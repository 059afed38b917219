#include "model/job_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "model/error_fingerprint.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr Timestamp kNow{1000h};

JobRecord some_record() {
  return {.pushed_at = kNow - 10h, .headers = {{"tenant", "a"}, {"region", "eu"}}};
}

JobState some_death() {
  return {.status = JobStatus::dead,
          .failures = 3,
          .last_error = "timeout after 31 ms",
          .last_error_type = "Timeout",
          .death_reason = DeathReason::max_attempts,
          .ended_at = kNow - 2h};
}

bool matches_death(const JobFilter& filter) {
  const JobState state = some_death();
  return matches(filter, some_record(), &state, kNow);
}
bool matches_fresh(const JobFilter& filter) {
  return matches(filter, some_record(), nullptr, kNow);
}

// --- What it matches.

TEST(JobFilter, AnEmptyOneMatchesEverything) {
  EXPECT_TRUE(matches_death({}));
  EXPECT_TRUE(matches_fresh({}));
}

TEST(JobFilter, StatusIsTheCallersBusiness) {
  EXPECT_TRUE(matches_death({.status = JobStatus::failed}));
}

TEST(JobFilter, Lane) {
  EXPECT_TRUE(matches_death({.lane = Lane::retry}));
  EXPECT_FALSE(matches_death({.lane = Lane::fresh}));
  EXPECT_TRUE(matches_fresh({.lane = Lane::fresh}));
  EXPECT_FALSE(matches_fresh({.lane = Lane::retry}));
}

TEST(JobFilter, ErrorIsAPartOfTheLastOne) {
  EXPECT_TRUE(matches_death({.error = "timeout"}));
  EXPECT_TRUE(matches_death({.error = "31 ms"}));
  EXPECT_FALSE(matches_death({.error = "Timeout"})) << "letter by letter";
  EXPECT_FALSE(matches_fresh({.error = "timeout"}));
}

TEST(JobFilter, ErrorTypeIsTheWholeOfIt) {
  EXPECT_TRUE(matches_death({.error_type = "Timeout"}));
  EXPECT_FALSE(matches_death({.error_type = "Time"}));
  EXPECT_FALSE(matches_fresh({.error_type = "Timeout"}));
}

TEST(JobFilter, FingerprintIsThatOfErrorAndType) {
  EXPECT_TRUE(matches_death({.fingerprint = error_fingerprint("timeout after 7 ms", "Timeout")}));
  EXPECT_FALSE(matches_death({.fingerprint = error_fingerprint("timeout after 7 ms", "")}));
  EXPECT_FALSE(matches_fresh({.fingerprint = error_fingerprint("", "")}));
}

TEST(JobFilter, Reason) {
  EXPECT_TRUE(matches_death({.reason = DeathReason::max_attempts}));
  EXPECT_FALSE(matches_death({.reason = DeathReason::final}));
  EXPECT_FALSE(matches_fresh({.reason = DeathReason::max_attempts}));
}

TEST(JobFilter, TheAgeOfADeadJobIsSinceItsEnd) {
  EXPECT_TRUE(matches_death({.older_than = 2h - 1us}));
  EXPECT_FALSE(matches_death({.older_than = 2h})) << "strictly";
  EXPECT_TRUE(matches_death({.newer_than = 2h + 1us}));
  EXPECT_FALSE(matches_death({.newer_than = 2h})) << "strictly";
  EXPECT_TRUE(matches_death({.older_than = 1h, .newer_than = 3h}));
}

TEST(JobFilter, TheAgeOfACompletedJobIsSinceItsEnd) {
  const JobState completed{.status = JobStatus::completed, .ended_at = kNow - 2h};
  EXPECT_FALSE(matches({.older_than = 2h}, some_record(), &completed, kNow));
  EXPECT_TRUE(matches({.older_than = 1h}, some_record(), &completed, kNow));
}

TEST(JobFilter, TheAgeOfAnyOtherIsSinceItsPush) {
  EXPECT_TRUE(matches_fresh({.older_than = 10h - 1us}));
  EXPECT_FALSE(matches_fresh({.older_than = 10h}));
  EXPECT_TRUE(matches_fresh({.newer_than = 10h + 1us}));
  EXPECT_FALSE(matches_fresh({.newer_than = 10h}));
}

TEST(JobFilter, EachHeaderMustBeThereWithItsValue) {
  EXPECT_TRUE(matches_fresh({.headers = {{"tenant", "a"}}}));
  EXPECT_TRUE(matches_fresh({.headers = {{"region", "eu"}, {"tenant", "a"}}}));
  EXPECT_FALSE(matches_fresh({.headers = {{"tenant", "b"}}}));
  EXPECT_FALSE(matches_fresh({.headers = {{"tenant", ""}}}));
  EXPECT_FALSE(matches_fresh({.headers = {{"Tenant", "a"}}}));
  EXPECT_FALSE(matches_fresh({.headers = {{"tenant", "a"}, {"region", "us"}}}));
}

TEST(JobFilter, AllFieldsTogether) {
  JobFilter filter{.lane = Lane::retry,
                   .error = "timeout",
                   .error_type = "Timeout",
                   .reason = DeathReason::max_attempts,
                   .older_than = 1h,
                   .newer_than = 3h,
                   .headers = {{"tenant", "a"}}};
  EXPECT_TRUE(matches_death(filter));
  filter.error_type = "Other";
  EXPECT_FALSE(matches_death(filter)) << "each must match";
}

// --- JSON.

Result<JobFilter> read(std::string_view text) {
  const auto json = Json::parse(text);
  EXPECT_TRUE(json) << text;
  return filter_from_json(*json);
}

std::string written(const JobFilter& filter) {
  JsonWriter out;
  write_filter_json(out, filter);
  return out.take();
}

TEST(JobFilterJson, ReadsEachField) {
  const auto filter = read(R"({"status": "failed", "error": "timeout", "error_type": "Timeout",
                               "fingerprint": "00000000DEADBEEF", "reason": "worker_lost",
                               "older_than": "7d", "newer_than": 3600,
                               "headers": {"tenant": "a", "region": ""}})");
  ASSERT_TRUE(filter) << filter.error().detail;
  EXPECT_EQ(*filter, (JobFilter{.status = JobStatus::failed,
                                .error = "timeout",
                                .error_type = "Timeout",
                                .fingerprint = 0xDEADBEEF,
                                .reason = DeathReason::worker_lost,
                                .older_than = 168h,
                                .newer_than = 1h,
                                .headers = {{"tenant", "a"}, {"region", ""}}}));
}

TEST(JobFilterJson, AnEmptyObjectIsNoFilter) {
  EXPECT_EQ(*read("{}"), JobFilter{});
  EXPECT_EQ(*read(R"({"headers": {}})"), JobFilter{});
}

TEST(JobFilterJson, NullIsAsIfItWereNotThere) {
  const auto filter = read(R"({"status": null, "error": null, "error_type": null, "reason": null,
                               "fingerprint": null, "older_than": null, "newer_than": null,
                               "headers": null})");
  ASSERT_TRUE(filter) << filter.error().detail;
  EXPECT_EQ(*filter, JobFilter{});
}

TEST(JobFilterJson, WritesWhatIsSetAndReadsItBack) {
  EXPECT_EQ(written({}), "{}");
  EXPECT_EQ(written({.error = "x"}), R"({"error":"x"})");
  const JobFilter all{.status = JobStatus::dead,
                      .error = "say \"no\"",
                      .error_type = "T",
                      .fingerprint = 0xDEADBEEF,
                      .reason = DeathReason::expired,
                      .older_than = 90s,
                      .newer_than = 1500ms,
                      .headers = {{"a", "b"}}};
  const auto back = read(written(all));
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(*back, all);
}

struct Refused {
  std::string_view json;
  std::string_view named;
};

class RefusedFilter : public testing::TestWithParam<Refused> {};

TEST_P(RefusedFilter, NamesTheField) {
  const auto filter = read(GetParam().json);
  ASSERT_FALSE(filter) << GetParam().json;
  EXPECT_THAT(filter.error().detail, HasSubstr(std::string(GetParam().named)));
}

INSTANTIATE_TEST_SUITE_P(Fields, RefusedFilter,
                         testing::Values(Refused{R"({"status": "pending"})", "filter.status"},
                                         Refused{R"({"status": "nonsense"})", "filter.status"},
                                         Refused{R"({"status": 4})", "filter.status"},
                                         Refused{R"({"error": 1})", "filter.error"},
                                         Refused{R"({"error_type": []})", "filter.error_type"},
                                         Refused{R"({"fingerprint": "xyz"})", "filter.fingerprint"},
                                         Refused{R"({"fingerprint": 7})", "filter.fingerprint"},
                                         Refused{R"({"reason": "none"})", "filter.reason"},
                                         Refused{R"({"reason": "boredom"})", "filter.reason"},
                                         Refused{R"({"older_than": "soon"})", "filter.older_than"},
                                         Refused{R"({"older_than": "-1s"})", "filter.older_than"},
                                         Refused{R"({"newer_than": {}})", "filter.newer_than"},
                                         Refused{R"({"headers": "x"})", "filter.headers"},
                                         Refused{R"({"headers": {"a": 1}})", "filter.headers"},
                                         Refused{R"({"lane": "retry"})", "filter.lane"},
                                         Refused{R"({"sttaus": "dead"})", "filter.sttaus"},
                                         Refused{R"(["dead"])", "filter"}));

}  // namespace
}  // namespace reprise
