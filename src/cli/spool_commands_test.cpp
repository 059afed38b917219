// The commands of the spool as far as they need no endpoint: exit codes, messages, flags.
#include "cli/spool_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json_view.h"
#include "base/ulid.h"
#include "support/cli_run.h"
#include "support/temp_directory.h"

namespace reprise::cli {
namespace {

using test::CliRun;
using test::run_cli;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SpoolCommands : public ::testing::Test {
 protected:
  CliRun run(std::vector<const char*> args) {
    args.insert(args.end(), {"--spool", directory.c_str()});
    return run_cli(std::move(args));
  }

  test::TempDirectory temp;
  std::string directory = temp / "spool";
};

TEST_F(SpoolCommands, WrongUsageIsTwoAndMakesNoSpool) {
  const std::string too_large = '"' + std::string(1 << 20, 'x') + '"';
  const std::vector<std::vector<const char*>> wrong{
      {"spool"},
      {"spool", "add"},
      {"spool", "add", ""},
      {"spool", "add", "a\nb"},
      {"spool", "add", "t", "--data", "{"},
      {"spool", "add", "t", "--data", "plain"},
      {"spool", "add", "t", "--data", too_large.c_str()},
      {"spool", "add", "t", "--data", "1", "--data-stdin"},
      {"spool", "add", "t", "--data", "1", "--ndjson-stdin"},
      {"spool", "add", "t", "--data-stdin", "--ndjson-stdin"},
      {"spool", "add", "t", "--max-events", "0"},
      {"spool", "add", "t", "--max-events", "few"},
      {"spool", "add", "t", "--max-bytes", "much"},
      {"spool", "add", "t", "--when-full", "burst"},
      {"spool", "import"},
      {"spool", "import", "/nonexistent"},
      {"spool", "drain", "--batch", "0"},
      {"spool", "drain", "--batch", "101"},
      {"spool", "drain", "--max-attempts", "0"},
      {"spool", "drain", "--to", "ftp://x"},
      {"spool", "retry"},
      {"spool", "retry", "--dry-run"},
      {"spool", "retry", "01KA", "--all"},
      {"spool", "retry", "01KA", "--type", "a*"},
      {"spool", "retry", "--all", "--error", "x"},
      {"spool", "retry", "--older-than", "long"},
      {"spool", "purge"},
      {"spool", "purge", "01KA", "--reason", "corrupt"},
  };
  for (const auto& args : wrong) {
    const auto ran = run(args);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(args) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("eprise"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(SpoolCommands, WithoutASpoolThereIsNothing) {
  const auto status = run({"spool", "status", "--json"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_EQ(status.out,
            R"({"directory":")" + directory +
                R"(","queued":0,"queuedBytes":0,"oldest":null,"oldestAt":null,"dead":0,)"
                R"("deadBytes":0,"temporaries":0,"ignored":0,"quota":null,"drainer":null})"
                "\n");
  EXPECT_EQ(run({"spool", "inspect"}).out,
            "ID\tEVENT TYPE\tATTEMPTS\tLAST ERROR\tDEAD-LETTERED AT\n");
  EXPECT_EQ(run({"spool", "drain"}).out,
            "accepted 0, duplicates 0, retried 0, dead-lettered 0, corrupt 0, remaining 0\n");
  EXPECT_EQ(run({"spool", "retry", "--all"}).out, "retried 0, skipped 0, not found 0\n");
  EXPECT_EQ(run({"spool", "purge", "--all"}).out, "purged 0, skipped 0, not found 0\n");
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(SpoolCommands, AnAddedEventIsThereUnderThePrintedId) {
  const auto added = run({"spool", "add", "order.created", "--data", R"( {"id": 7.0} )"});
  EXPECT_EQ(added.exit_code, 0) << added.err;
  ASSERT_EQ(added.out.size(), kUlidChars + 1);
  const std::string id = added.out.substr(0, kUlidChars);
  EXPECT_TRUE(std::filesystem::exists(directory + "/queue/" + id + ".json"));
  const auto status = run({"spool", "status", "--json"});
  EXPECT_EQ(JsonView(status.out.substr(0, status.out.size() - 1))["oldest"].string_or(""), id);
}

TEST_F(SpoolCommands, AFullSpoolRefusesWithTheFigures) {
  EXPECT_EQ(run({"spool", "add", "t", "--max-events", "1"}).exit_code, 0);
  const auto refused = run({"spool", "add", "t"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("(spool_full)"));
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_EQ(run({"spool", "add", "t", "--max-events", "none"}).exit_code, 0);
}

TEST_F(SpoolCommands, AnIdThatIsNotThereIsTold) {
  const auto ran = run({"spool", "purge", "01KA"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "purged 0, skipped 0, not found 1\n");
  EXPECT_EQ(ran.err, "reprise: no dead letter '01KA' (not_found)\n");
  EXPECT_EQ(run({"spool", "inspect", "01KA"}).exit_code, 1);
}

// The spool of `queue push --spool` is that of the environment.
class PushWithASpool : public SpoolCommands {
 protected:
  PushWithASpool() { setenv("REPRISE_SPOOL", directory.c_str(), 1); }
  ~PushWithASpool() override { unsetenv("REPRISE_SPOOL"); }

  // Nothing listens on port 1.
  CliRun push(std::vector<const char*> args) {
    args.insert(args.begin(), {"queue", "push", "orders"});
    args.insert(args.end(), {"--spool", "-n", "shop", "--server", "http://127.0.0.1:1"});
    return run_cli(std::move(args));
  }
};

TEST_F(PushWithASpool, KeepsTheJobWithoutAServer) {
  const auto ran = push({"1"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("/spool: cannot reach http://127.0.0.1:1"));
  EXPECT_THAT(ran.err, HasSubstr("reprise spool drain"));
  EXPECT_TRUE(
      std::filesystem::exists(directory + "/queue/" + ran.out.substr(0, kUlidChars) + ".json"));
}

TEST_F(PushWithASpool, SaysSoInJson) {
  const auto ran = push({"1", "--json"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, ::testing::MatchesRegex("\\{\"spooled\":true,\"id\":\"[0-9A-Z]+\"\\}\n"));
  EXPECT_THAT(ran.err, IsEmpty());
}

TEST_F(PushWithASpool, WithoutAPayloadItIsWrongUsage) {
  EXPECT_EQ(push({}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(PushWithASpool, AFullSpoolIsToldWithTheReason) {
  EXPECT_EQ(run({"spool", "add", "t", "--max-events", "1"}).exit_code, 0);
  const auto ran = push({"1"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("cannot reach http://127.0.0.1:1"));
  EXPECT_THAT(ran.err, HasSubstr("(spool_full)"));
}

}  // namespace
}  // namespace reprise::cli
