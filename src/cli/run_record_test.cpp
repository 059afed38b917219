#include "cli/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/exit_code.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true, .columns = 200};
constexpr char kFailed[] =
    R"({"id":"3K9M2QAX7B4C1","namespace":"shop","pipeline":"ship","worker":"shipper",)"
    R"("queue":"orders","type":"persisted","job":"7ZK3M9QAX2B4C","status":"failed",)"
    R"("started_at":"2026-01-31T08:15:00.000Z","ended_at":"2026-01-31T08:15:02.500Z",)"
    R"("error":"step pick: exit code 3: no such order","error_type":"exit_3","log_bytes":2048,)"
    R"("log_left_out":0,"steps":[{"name":"pick","visit":1,"status":"failed","exit_code":3,)"
    R"("error":"exit code 3: no such order","started_at":"2026-01-31T08:15:00.000Z",)"
    R"("ended_at":"2026-01-31T08:15:01.000Z"}]})";
constexpr char kTrial[] =
    R"({"id":"4AAAAAAAAAAAA","namespace":"shop","pipeline":"ship","worker":null,"queue":null,)"
    R"("type":null,"job":null,"status":"running","started_at":"2026-01-31T08:15:00.000Z",)"
    R"("ended_at":null,"error":null,"error_type":null,"log_bytes":0,"log_left_out":0,"steps":[]})";

Timestamp now() { return *parse_timestamp("2026-01-31T08:17:05.000Z"); }

std::string listed(std::string_view run, bool with_namespace, const Terminal& terminal) {
  Table table(run_columns(with_namespace), terminal, true);
  table.add(run_row(JsonView(run), with_namespace, terminal, now()));
  return table.take_text();
}

TEST(RunRecord, ARunIsARow) {
  EXPECT_EQ(listed(kFailed, false, kPipe),
            "ID\tSTATUS\tPIPELINE\tWORKER\tJOB\tSTARTED\tTOOK\tERROR\n"
            "3K9M2QAX7B4C1\tfailed\tship\tshipper\t7ZK3M9QAX2B4C\t2026-01-31T08:15:00.000Z\t2.5s\t"
            "step pick: exit code 3: no such order\n");
  EXPECT_EQ(listed(kTrial, true, kPipe),
            "NAMESPACE\tID\tSTATUS\tPIPELINE\tWORKER\tJOB\tSTARTED\tTOOK\tERROR\n"
            "shop\t4AAAAAAAAAAAA\trunning\tship\t-\t-\t2026-01-31T08:15:00.000Z\t2m 5s\t-\n");
}

TEST(RunRecord, OnATerminalIdsAreShortAndKeysOfOthersAreNot) {
  EXPECT_THAT(listed(kFailed, false, kScreen),
              HasSubstr("3K9M2QAX  failed  ship      shipper  7ZK3M9QA  "));
  EXPECT_THAT(
      listed(R"({"id":"3K9M2QAX7B4C1","type":"external","job":"issue-123456"})", false, kScreen),
      HasSubstr("issue-123456"));
}

TEST(RunRecord, AShellLearnsHowItEnded) {
  const auto code = [](const std::string& status) {
    const std::string run = R"({"status":")" + status + R"("})";
    return run_exit_code(JsonView(run));
  };
  EXPECT_EQ(code("succeeded"), 0);
  EXPECT_EQ(code("failed"), 1);
  EXPECT_EQ(code("cancelled"), 4);
  EXPECT_EQ(code("lost"), 5);
  EXPECT_EQ(code("running"), 6);
  EXPECT_EQ(code("something new"), 1);
}

TEST(RunRecord, AProblemSaysWhy) {
  EXPECT_EQ(run_problem(JsonView(kFailed)).message, "step pick: exit code 3: no such order");
  EXPECT_EQ(run_problem(JsonView(kFailed)).code, "exit_3");
  EXPECT_EQ(run_problem(JsonView(kTrial)).message, "run 4AAAAAAAAAAAA still runs");
  const auto cancelled =
      run_problem(JsonView(R"({"id":"4A","status":"cancelled","error":"cancelled"})"));
  EXPECT_EQ(cancelled.message, "run 4A was cancelled");
  EXPECT_EQ(cancelled.code, "cancelled");
  EXPECT_EQ(run_problem(JsonView(R"({"id":"4A","status":"lost","error":null})")).message,
            "run 4A was lost");
  EXPECT_EQ(run_problem(JsonView(R"({"id":"4A","status":"failed"})")).message, "run 4A has failed");
}

TEST(RunRecord, PeopleReadSectionsAndAPipeFields) {
  const std::string people = run_text(JsonView(kFailed), kScreen, now());
  EXPECT_THAT(people, HasSubstr("Run 3K9M2QAX7B4C1 (namespace shop), failed, took 2.5s\n"));
  EXPECT_THAT(people, HasSubstr("2 KiB"));
  EXPECT_THAT(people, HasSubstr("Steps\n"));
  EXPECT_THAT(people, HasSubstr("pick      1  failed     3  1s    exit code 3: no such order"));
  const std::string piped = run_text(JsonView(kFailed), kPipe, now());
  EXPECT_THAT(piped, HasSubstr("log_bytes\t2048\n"));
  EXPECT_THAT(piped, HasSubstr("steps.0.exit_code\t3\n"));
  EXPECT_THAT(run_text(JsonView(kTrial), kScreen, now()), HasSubstr("running, for 2m 5s\n"));
}

}  // namespace
}  // namespace reprise::cli
