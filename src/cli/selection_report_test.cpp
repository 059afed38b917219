#include "cli/selection_report.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

CommandContext context() { return *CommandContext::make({}, Scope::whole_server); }

struct Printed {
  int exit_code;
  std::string out;
  std::string err;
};

Printed printed(const SelectionReport& report) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int code = report.print(context());
  std::fflush(stdout);
  std::string out = ::testing::internal::GetCapturedStdout();
  return {.exit_code = code, .out = out, .err = ::testing::internal::GetCapturedStderr()};
}

TEST(SelectionReport, CountsRepliesTogether) {
  SelectionReport report(kRetryVerb, "orders");
  report.add_reply(JsonView(R"({"retried":2,"skipped":[],"not_found":[],"operation":null})"));
  report.add_reply(JsonView(R"({"retried":3,"skipped":[],"not_found":[],"operation":null})"));
  const auto shown = printed(report);
  EXPECT_EQ(shown.out, "retried 5, skipped 0, not found 0\n");
  EXPECT_EQ(shown.err, "");
  EXPECT_EQ(shown.exit_code, kExitOk);
}

TEST(SelectionReport, OneRefusedJobIsEnoughForExitOne) {
  SelectionReport report(kPurgeVerb, "orders");
  report.add_reply(
      JsonView(R"({"purged":1,"skipped":[{"id":"1FQ0","status":"pending","reason":"is pending"}],)"
               R"("not_found":["7ZK3"]})"));
  const auto shown = printed(report);
  EXPECT_EQ(shown.out, "purged 1, skipped 1, not found 1\n");
  EXPECT_EQ(shown.err,
            "reprise: is pending (wrong_status)\n"
            "reprise: no job '7ZK3' in queue 'orders' (job_not_found)\n");
  EXPECT_EQ(shown.exit_code, kExitRefused);
}

TEST(SelectionReport, AnOperationCountsAllThatItSkipped) {
  SelectionReport report(kRetryVerb, "orders");
  report.add_reply(JsonView(R"({"retried":5,"skipped":[{"reason":"x"}],"not_found":[],)"
                            R"("operation":{"skipped":12,"state":"done"}})"));
  EXPECT_EQ(printed(report).out, "retried 5, skipped 12, not found 0\n");
}

TEST(SelectionReport, AnOperationThatEndedEarlyIsNoSuccess) {
  for (const char* state : {"cancelled", "failed"}) {
    SelectionReport report(kRetryVerb, "orders");
    const std::string operation =
        R"({"id":7,"done":3,"skipped":0,"error":"gone","state":")" + std::string(state) + R"("})";
    report.add_operation(JsonView(operation));
    const auto shown = printed(report);
    EXPECT_EQ(shown.out, "retried 3, skipped 0, not found 0\n");
    EXPECT_EQ(shown.exit_code, kExitRefused);
  }
  SelectionReport done(kRetryVerb, "orders");
  done.add_operation(JsonView(R"({"id":7,"done":3,"skipped":0,"state":"done","error":null})"));
  EXPECT_EQ(done.exit_code(), kExitOk);
  SelectionReport within_the_call(kRetryVerb, "orders");
  within_the_call.add_reply(JsonView(
      R"({"retried":3,"skipped":[],"not_found":[],"operation":{"skipped":0,"state":"failed"}})"));
  EXPECT_EQ(within_the_call.exit_code(), kExitRefused);
}

TEST(SelectionReport, APrefixThatFitsSeveralIsNamedSo) {
  SelectionReport report(kRetryVerb, "orders");
  report.add_reply(JsonView(
      R"({"retried":0,"skipped":[{"id":"7ZK3","status":null,"code":"ambiguous_id","reason":"7ZK3 fits 2 jobs"}],)"
      R"("not_found":[],"operation":null})"));
  EXPECT_EQ(printed(report).err, "reprise: 7ZK3 fits 2 jobs (ambiguous_id)\n");
}

TEST(DryRun, SaysHowManyThereAre) {
  EXPECT_EQ(matched_text(JsonView(R"({"matched":40})")), "40 jobs");
  EXPECT_EQ(matched_text(JsonView(R"({"matched":1})")), "1 job");
}

}  // namespace
}  // namespace reprise::cli
