#include "cli/reply_text.h"

#include <gtest/gtest.h>

#include "base/time.h"
#include "cli/exit_code.h"
#include "cli/progress.h"

namespace reprise::cli {
namespace {

TEST(ReplyText, ShowsValues) {
  EXPECT_EQ(text_of(JsonView("\"a\\n\"")), "a\n");
  EXPECT_EQ(text_of(JsonView("1.50")), "1.50");
  EXPECT_EQ(text_of(JsonView("null")), "");
  EXPECT_EQ(text_of(JsonView()), "");
}

TEST(ReplyText, ReadsTimesBack) {
  const Timestamp time = Timestamp(std::chrono::milliseconds(1'769'847'300'250));
  EXPECT_EQ(parse_timestamp(format_timestamp(time)), time);
  for (const char* text : {"", "2026-01-31", "2026-01-31T08:15:00.250", "2026-02-30T08:15:00.250Z",
                           "2026-01-31 08:15:00.250Z", "202x-01-31T08:15:00.250Z"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
}

TEST(ReplyText, AgesAreNeverNegative) {
  const JsonView time("\"2026-01-31T08:15:00.000Z\"");
  const Timestamp at = *parse_timestamp("2026-01-31T08:15:00.000Z");
  EXPECT_EQ(age_text(time, at + std::chrono::seconds(125)), "2m 5s");
  EXPECT_EQ(age_text(time, at - std::chrono::seconds(5)), age_text(time, at));
  EXPECT_EQ(until_text(time, at - std::chrono::seconds(125)), "2m 5s");
  EXPECT_EQ(age_text(JsonView("null"), at), "");
}

TEST(ReplyText, NumbersAreForPeople) {
  EXPECT_EQ(seconds_text(JsonView("125")), "2m 5s");
  EXPECT_EQ(seconds_text(JsonView("null")), "");
  EXPECT_FALSE(seconds_text(JsonView("1e300")).empty());
  EXPECT_EQ(rate_text(JsonView("0.349")), "0.3");
  EXPECT_EQ(bytes_text(JsonView("1048576")), "1 MiB");
  EXPECT_EQ(percent_text(JsonView("0.667")), "67%");
  EXPECT_EQ(percent_text(JsonView("1")), "100%");
  EXPECT_EQ(percent_text(JsonView("0")), "0%");
  EXPECT_EQ(percent_text(JsonView("null")), "");
}

TEST(ReplyText, PayloadsAreJsonOrBase64) {
  EXPECT_EQ(payload_cell(JsonView(R"({"payload":{"a":1.0}})")).text(), R"({"a":1.0})");
  EXPECT_EQ(payload_cell(JsonView(R"({"payload_base64":"AAEC"})")).text(), "base64:AAEC");
}

TEST(ExitCode, OnlyNoServerIsThree) {
  EXPECT_EQ(exit_code_for(Errc::unreachable), 3);
  EXPECT_EQ(exit_code_for(Errc::lease_lost), 1);
}

TEST(Progress, ShowsABarWhenTheEndIsKnown) {
  EXPECT_EQ(progress_text({50, 100, 7, "lines"}), "[###############---------------]  50%  7 lines");
  EXPECT_EQ(progress_text({200, 100, 7, "lines"}),
            "[##############################] 100%  7 lines");
  EXPECT_EQ(progress_text({200, 0, 7, "lines"}), "7 lines");
}

}  // namespace
}  // namespace reprise::cli
