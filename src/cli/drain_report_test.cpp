#include "cli/drain_report.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

using spool::DrainEnd;
using spool::DrainResult;

DrainResult some_of_each() {
  DrainResult result;
  result.accepted = 1;
  result.duplicates = 2;
  result.retried = 3;
  result.dead_lettered = 4;
  result.corrupt = 5;
  result.remaining = 6;
  return result;
}

DrainResult ended(DrainEnd end, std::string reason) {
  DrainResult result;
  result.end = end;
  result.stop_reason = std::move(reason);
  return result;
}

TEST(DrainReport, TheTextHasEveryCount) {
  EXPECT_EQ(drain_text(some_of_each()),
            "accepted 1, duplicates 2, retried 3, dead-lettered 4, corrupt 5, remaining 6\n");
}

TEST(DrainReport, TheJsonHasEveryCount) {
  EXPECT_EQ(drain_json(some_of_each()),
            "{\"accepted\":1,\"retried\":3,\"deadLettered\":4,\"corrupt\":5,\"duplicates\":2,"
            "\"remaining\":6,\"stoppedEarly\":false}\n");
}

TEST(DrainReport, TheJsonSaysWhyItStopped) {
  EXPECT_EQ(drain_json(ended(DrainEnd::refused, "HTTP 401")),
            "{\"accepted\":0,\"retried\":0,\"deadLettered\":0,\"corrupt\":0,\"duplicates\":0,"
            "\"remaining\":0,\"stoppedEarly\":true,\"stopReason\":\"HTTP 401\"}\n");
}

TEST(DrainReport, DeathsAreTold) {
  DrainResult result;
  EXPECT_EQ(deaths_note(result), "");
  result.corrupt = 1;
  EXPECT_EQ(deaths_note(result),
            "⚠ 1 event moved to dead-letter queue\n"
            "  Run `reprise spool inspect` to see details.\n"
            "  Run `reprise spool retry` to re-process them.");
  result.dead_lettered = 2;
  EXPECT_TRUE(deaths_note(result).starts_with("⚠ 3 events moved to dead-letter queue\n"));
}

TEST(DrainReport, WithRejectedEventsAloneItIsDone) {
  DrainResult result;
  result.retried = result.remaining = 2;
  EXPECT_EQ(drain_exit_code(result), kExitOk);
  EXPECT_FALSE(drain_problem(result));
}

TEST(DrainReport, EveryEndBeforeTheEndIsFive) {
  for (const auto end : {DrainEnd::trouble, DrainEnd::refused, DrainEnd::interrupted}) {
    const auto result = ended(end, "why");
    EXPECT_EQ(drain_exit_code(result), kExitMoreToSend);
    ASSERT_TRUE(drain_problem(result));
    EXPECT_TRUE(drain_problem(result)->message.starts_with("why"));
  }
}

TEST(DrainReport, AFailedBatchIsFiveToo) {
  DrainResult result;
  result.failed_batches = 2;
  EXPECT_EQ(drain_exit_code(result), kExitMoreToSend);
  EXPECT_EQ(drain_problem(result)->message, "2 batches could not be sent; drain again later");
}

TEST(DrainReport, ALocalFailureIsOne) {
  DrainResult result;
  result.local_failures = 1;
  result.failed_batches = 1;
  EXPECT_EQ(drain_exit_code(result), kExitRefused);
  EXPECT_EQ(drain_problem(result)->code, "io");
}

}  // namespace
}  // namespace reprise::cli
