// The commands as they are typed, on files of a real project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/cli_run.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunbookCommands : public ::testing::Test {
 protected:
  RunbookCommands() : root_(directory_ / "shop") {
    std::filesystem::create_directories(root_ + "/.reprise");
  }
  void runbook(std::string_view text) { test::write_file(root_ + "/.reprise/shop.toml", text); }

  test::TempDirectory directory_;
  std::string root_;
};

TEST_F(RunbookCommands, CheckAGoodOne) {
  runbook("[queue.orders]\ntype = 'persisted'\nvars = []\n");
  const auto run = run_cli({"runbook", "check", root_.c_str()});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, ".reprise/shop.toml: 1 queue, 0 pipelines, 0 workers\n");
  EXPECT_THAT(run.err, IsEmpty());
}

TEST_F(RunbookCommands, CheckABadOne) {
  runbook("[queue.orders]\ntype = 'persisted'\nvars = []\npoll = '5s'\nfoo = 1");
  const auto run = run_cli({"runbook", "check", root_.c_str()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out,
              HasSubstr(".reprise/shop.toml:4: queue.orders.poll: persisted queue must not "
                        "have 'poll' field"));
  EXPECT_THAT(run.out, HasSubstr(".reprise/shop.toml:5: queue.orders.foo: unknown field"));
  const auto json = run_cli({"runbook", "check", root_.c_str(), "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.out, HasSubstr("{\"ok\":false,\"project\":\"shop\""));
}

TEST_F(RunbookCommands, ShowAGoodOne) {
  runbook("[queue.orders]\ntype = 'persisted'\nvars = []\n");
  const auto run = run_cli({"runbook", "show", root_.c_str(), "--project", "other"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("project other ("));
  EXPECT_THAT(run.out, HasSubstr("orders"));
  const auto json = run_cli({"runbook", "show", root_.c_str(), "--json"});
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_THAT(json.out, HasSubstr("{\"project\":\"shop\""));
}

TEST_F(RunbookCommands, ShowOnlyTheErrorsOfABadOne) {
  runbook("[queue.orders]\n");
  const auto run = run_cli({"runbook", "show", root_.c_str()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("queue.orders: queue requires 'type' field"));
  const auto json = run_cli({"runbook", "show", root_.c_str(), "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.out, HasSubstr("{\"ok\":false"));
}

TEST_F(RunbookCommands, AreWrongUsageWithoutAProject) {
  for (const char* verb : {"check", "show"}) {
    const auto run = run_cli({"runbook", verb, directory_.path().c_str()});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.out, IsEmpty());
    EXPECT_THAT(run.err, HasSubstr("no project"));
  }
  EXPECT_EQ(run_cli({"runbook"}).exit_code, 2);
  EXPECT_EQ(run_cli({"runbook", "check", root_.c_str(), "--project", "a b"}).exit_code, 2);
}

}  // namespace
}  // namespace reprise::cli
