// The whole command line, as far as it needs no server: exit codes, messages, what is generated.
#include "cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/command_tree.h"
#include "cli/completion.h"
#include "cli/manpage.h"
#include "support/cli_run.h"

namespace reprise::cli {
namespace {

using test::CliRun;
using test::run_cli;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Nothing listens on port 1.
CliRun run_without_server(std::vector<const char*> args) {
  args.insert(args.end(), {"--server", "http://127.0.0.1:1"});
  return run_cli(std::move(args));
}

TEST(App, HelpAndVersionAreSuccess) {
  EXPECT_EQ(run_cli({"--help"}).exit_code, 0);
  EXPECT_THAT(run_cli({"--version"}).out, HasSubstr("reprise "));
  const auto help = run_cli({"queue", "push", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Usage: reprise queue push [OPTIONS] QUEUE [PAYLOAD]"));
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  EXPECT_THAT(help.err, IsEmpty());
}

TEST(App, WrongUsageIsTwo) {
  const std::vector<std::vector<const char*>> wrong{
      {},
      {"queue"},
      {"queue", "show"},
      {"queue", "show", "a", "b"},
      {"queue", "list", "--lees"},
      {"queue", "claim", "q", "--max", "many"},
      {"queue", "claim", "q", "--wait", "soon"},
      {"queue", "claim", "q", "--lane", "middle"},
      {"queue", "push", "q", "plain"},
      {"queue", "push", "q", "1", "--header", "x"},
      {"queue", "push", "q", "1", "--stdin"},
      {"queue", "push", "q", "--stdin", "--key", "k"},
      {"queue", "push", "q", "--stdin", "--envelope", "--raw"},
      {"queue", "push", "q", "--file", "/nonexistent/file"},
      {"queue", "push", "q", "1", "--weight", "x"},
      {"queue", "push", "q", "1", "--weight", "-1"},
      {"queue", "push", "q", "1", "--weight", "1.5"},
      {"queue", "push", "q", "1", "--fairness-key"},
      {"queue", "push", "q", "1", "--fairness-key", "\xff"},
      {"queue", "push", "q", "1", "--throttle-key", "\xff"},
      {"queue", "push", "q", "--stdin", "--envelope", "--fairness-key", "a"},
      {"queue", "push", "q", "--stdin", "--envelope", "--weight", "2"},
      {"queue", "push", "q", "--stdin", "--envelope", "--throttle-key", "a"},
      {"queue", "update", "q"},
      {"queue", "create", "q", "--max-bytes", "64 megs"},
      {"queue", "jobs", "q", "--all", "--limit", "5"},
      {"queue", "ack"},
      {"queue", "create", "q", "--retry-attempts", "3", "--max-retries", "2"},
      {"queue", "create", "q", "--retry-cooldown", "3s", "--backoff-base", "2s"},
      {"queue", "create", "q", "--backoff-factor", "fast"},
      {"queue", "policy", "--max-retries", "2", "--retry-attempts", "2"},
      {"queue", "policy", "--backoff-factor", "0.5"},
      {"queue", "policy", "--backoff-base", "2h"},
      {"queue", "policy", "--limit", "0"},
      {"queue", "inspect", "q", "7ZK3", "--error", "x"},
      {"queue", "retry", "q", "7ZK3", "--all"},
      {"queue", "retry", "q", "7ZK3", "--limit", "3"},
      {"queue", "retry", "q", "--all", "--error", "x"},
      {"queue", "retry", "q", "--all", "--rate", "fast"},
      {"queue", "retry", "q", "--status", "failed"},
      {"queue", "retry", "q", "--all", "--status", "pending"},
      {"queue", "purge", "q", "--all", "--status", "dead"},
      {"queue", "purge", "q", "--dry-run"},
      {"queue", "create", "q", "--on-failure-file", "/nonexistent/file"},
      {"queue", "create", "q", "--on-failure-file", ""},
      {"queue", "update", "q", "--on-enqueue-file", "-", "--on-failure-file", "-"},
      {"queue", "create", "q", "--on-hook-error", "panic"},
      {"queue", "create", "q", "--concurrency", "few"},
      {"queue", "update", "q", "--breaker", "min"},
      {"queue", "create", "q", "--hook-timeout-ms", "10ms"},
      {"queue", "create", "q", "--hook-memory", "much"},
      {"hook"},
      {"hook", "test", "q"},
      {"hook", "test", "q", "--on-failure", "--sample", "/nonexistent/file"},
      {"hook", "test", "q", "--on-failure", "--sample", "/dev/null"},
      {"hook", "test", "q", "--on-failure-file", "a", "--on-enqueue-file", "b", "--sample", "c"},
      {"hook", "test", "q", "--on-failure-file", "a", "--on-failure", "--sample", "c"},
      {"hook", "replay", "q", "--on-failure-file", "/nonexistent/file"},
      {"hook", "replay", "q", "--on-enqueue-file", "a"},
      {"hook", "replay", "q", "--limit", "10001"},
      {"hook", "replay", "q", "--status", "active"},
      {"hook", "show"},
      {"hook", "show", "q", "--on-failure", "--on-enqueue"},
      {"config"},
      {"config", "set", "k"},
      {"config", "set", "k", "\xff"},
      {"config", "set", "", "v"},
      {"config", "get"},
      {"config", "list", "k"},
      {"throttle"},
      {"throttle", "set", "k"},
      {"throttle", "set", "k", "fast"},
      {"throttle", "set", "k", "0/s"},
      {"throttle", "set", "k", "1.5/s"},
      {"throttle", "set", "", "1/s"},
      {"throttle", "set", "k", "1/s", "--burst", "many"},
      {"throttle", "list", "k"},
      {"throttle", "unset"},
      {"throttle", "unset", ""},
      {"worker"},
      {"worker", "start"},
      {"worker", "stop", "a", "--all"},
      {"worker", "start", "a", "--now"},
      {"worker", "resize", "a"},
      {"worker", "resize", "a", "0"},
      {"worker", "resize", "a", "many"},
      {"worker", "logs"},
      {"worker", "logs", "a", "--tail", "much"},
      {"run"},
      {"run", "ship", "extra"},
      {"run", "ship", "list"},
      {"run", "--json", "list"},
      {"run", "ship", "--item", "plain"},
      {"run", "ship", "--item", "1", "--item-stdin"},
      {"run", "list", "--status", "done"},
      {"run", "show"},
      {"run", "wait", "3K9M", "--timeout", "soon"},
      {"project"},
      {"project", "add", "/nonexistent"},
      {"project", "remove"},
      {"timers", "--limit", "0"},
      {"status", "-n", "a", "--project", "b"},
      {"operation"},
      {"operation", "show", "seven"},
      {"audit", "--action", "look"},
      {"events", "--replay"},
      {"status", "--server", "ftp://x"},
      {"status", "--token-file", "/nonexistent/file"},
      {"completion", "tcsh"},
  };
  for (const auto& args : wrong) {
    const auto ran = run_cli(args);
    EXPECT_EQ(ran.exit_code, 2) << ::testing::PrintToString(args) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("eprise")) << ::testing::PrintToString(args);
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

TEST(App, SaysWhatWasProbablyMeant) {
  EXPECT_EQ(run_cli({"queue", "psuh", "orders"}).err,
            "reprise: unknown command 'psuh'; did you mean 'push'? See: reprise queue --help\n");
  EXPECT_THAT(run_cli({"quue", "list"}).err, HasSubstr("did you mean 'queue'?"));
  EXPECT_THAT(run_cli({"queue", "list", "--jsno"}).err, HasSubstr("did you mean '--json'?"));
  EXPECT_EQ(run_cli({"queue", "update", "q", "--breaker", "min=5,windw=1m"}).err,
            "reprise: --breaker: unknown field 'windw'; did you mean 'window'? See: reprise queue "
            "update --help\n");
  EXPECT_EQ(run_cli({"--json", "queue", "list"}).err,
            "reprise: --json goes after the command. See: reprise --help\n");
}

TEST(App, ACommandThatHasCommandsMayTakeWordsOfItsOwn) {
  EXPECT_EQ(run_cli({"run"}).err, "reprise: PIPELINE is required. See: reprise run --help\n");
  EXPECT_EQ(run_cli({"run", "ship", "extra"}).err,
            "reprise: unexpected argument 'extra'. See: reprise run --help\n");
  EXPECT_EQ(run_cli({"run", "--json", "list"}).err,
            "reprise: --json goes after the command. See: reprise run list --help\n");
  EXPECT_THAT(run_cli({"worker", "start"}).err, HasSubstr("NAME or --all"));
}

TEST(App, AFlagsProblemNamesTheFlag) {
  EXPECT_THAT(run_cli({"queue", "push", "q", "1", "--delay", "5 parsecs"}).err,
              HasSubstr("--delay"));
  EXPECT_THAT(run_cli({"queue", "create", "q", "--lease", "soon"}).err, HasSubstr("--lease"));
  EXPECT_EQ(run_cli({"queue", "create", "q", "--on-failure-file", "/nonexistent/a.lua"}).err,
            "reprise: --on-failure-file: cannot read /nonexistent/a.lua: No such file or "
            "directory. See: reprise queue create --help\n");
}

TEST(App, NoServerIsThree) {
  for (const auto& args : std::vector<std::vector<const char*>>{{"status"},
                                                                {"queue", "list"},
                                                                {"queue", "push", "q"},
                                                                {"queue", "push", "q", "1"},
                                                                {"queue", "ack", "t"},
                                                                {"queue", "inspect", "q"},
                                                                {"queue", "errors", "q"},
                                                                {"queue", "retry", "q", "7ZK3"},
                                                                {"queue", "purge", "q", "--all"},
                                                                {"hook", "show", "q"},
                                                                {"hook", "replay", "q"},
                                                                {"config", "set", "k", "v"},
                                                                {"config", "get", "k"},
                                                                {"config", "list"},
                                                                {"config", "unset", "k"},
                                                                {"throttle", "set", "k", "1/s"},
                                                                {"throttle", "list"},
                                                                {"throttle", "unset", "k"},
                                                                {"worker", "start", "a"},
                                                                {"worker", "list"},
                                                                {"worker", "logs", "a", "-f"},
                                                                {"run", "ship"},
                                                                {"run", "list"},
                                                                {"run", "wait", "3K9M"},
                                                                {"run", "logs", "3K9M", "-f"},
                                                                {"project", "list"},
                                                                {"timers"},
                                                                {"operation", "list"},
                                                                {"audit"},
                                                                {"events"}}) {
    const auto ran = run_without_server(args);
    EXPECT_EQ(ran.exit_code, 3) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("http://127.0.0.1:1"));
    EXPECT_THAT(ran.err, HasSubstr("(unreachable)"));
    EXPECT_THAT(ran.out, IsEmpty());
  }
  EXPECT_THAT(run_without_server({"status", "--json"}).err,
              HasSubstr(R"({"error":{"code":"unreachable",)"));
}

TEST(App, DeleteNeedsAYesWhereNobodyCanBeAsked) {
  const auto ran = run_without_server({"queue", "delete", "orders"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--yes"));
}

TEST(App, APolicyOfFlagsNeedsNoServer) {
  const auto ran = run_without_server({"queue", "policy", "--max-retries", "3"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "ATTEMPT\tWAIT\tAFTER\tIF IT FAILS\n"
            "1\t-\t0s\tretry\n"
            "2\t1s\t1s\tretry\n"
            "3\t4s\t5s\tretry\n"
            "4\t16s\t21s\tdead\n");
  EXPECT_EQ(run_without_server(
                {"queue", "policy", "--retry-attempts", "unlimited", "--limit", "1", "--no-header"})
                .out,
            "1\t-\t0s\tretry\n…\n");
  EXPECT_EQ(run_without_server({"queue", "policy", "orders"}).exit_code, 3);
}

TEST(App, RetryAndPurgeNeedASelectionWhereNobodyCanChoose) {
  for (const char* verb : {"retry", "purge"}) {
    const auto ran = run_without_server({"queue", verb, "orders"});
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("--all"));
  }
}

// The name of every command in the tree.
void collect_paths(const CommandTree& tree, std::vector<std::string>& paths) {
  for (const auto& command : tree.commands) {
    paths.push_back(command.path);
    collect_paths(command, paths);
  }
}

class Generated : public ::testing::Test {
 protected:
  Generated() {
    add_commands(app, exit_code);
    tree = command_tree(app);
    collect_paths(tree, paths);
  }
  int exit_code = 0;
  CLI::App app;
  CommandTree tree;
  std::vector<std::string> paths;
};

TEST_F(Generated, TheTreeKnowsFlagsAndArguments) {
  EXPECT_THAT(paths, ::testing::Contains("reprise queue push"));
  const auto& push = *std::ranges::find(tree.commands.front().commands, "push", &CommandTree::name);
  ASSERT_EQ(push.arguments.size(), 2U);
  EXPECT_EQ(push.arguments[0].name, "QUEUE");
  EXPECT_TRUE(push.arguments[0].required);
  const auto names_json = [](const CommandFlag& flag) { return flag.names.back() == "--json"; };
  EXPECT_EQ(std::ranges::count_if(push.flags, names_json), 1);
}

TEST_F(Generated, CompletionKnowsEveryCommand) {
  for (const auto& script : {bash_completion(tree), zsh_completion(tree)}) {
    for (const auto& path : paths) EXPECT_THAT(script, HasSubstr("'" + path + "')"));
    EXPECT_THAT(script, HasSubstr("'reprise queue push --delay'"));
    EXPECT_THAT(script, ::testing::Not(HasSubstr("'reprise queue push --json'")));
    EXPECT_THAT(script, HasSubstr("'reprise hook test --sample') return 0"));
    EXPECT_THAT(script, ::testing::Not(HasSubstr("'reprise queue push --delay') return 0")));
  }
  EXPECT_TRUE(zsh_completion(tree).starts_with("#compdef reprise\n"));
}

TEST_F(Generated, BashReadsTheCompletion) {
  const auto ran = run_cli({"completion", "bash"});
  EXPECT_EQ(ran.exit_code, 0);
  FILE* const bash = popen("bash -n", "w");
  ASSERT_NE(bash, nullptr);
  std::fputs(ran.out.c_str(), bash);
  EXPECT_EQ(pclose(bash), 0);
}

TEST_F(Generated, TheManPageHasEveryCommand) {
  const std::string page = man_page(tree, "1.2.3");
  EXPECT_TRUE(page.starts_with(".TH REPRISE 1"));
  for (const auto& path : paths) EXPECT_THAT(page, HasSubstr(escape_roff(path)));
  EXPECT_THAT(page, HasSubstr(".SS reprise run\n"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr(".SS reprise queue\n")));
}

TEST(Roff, TextMeansItself) {
  EXPECT_EQ(escape_roff("a-b\\c"), "a\\-b\\ec");
  EXPECT_EQ(escape_roff(".x\n'y z.\n"), "\\&.x\n\\&'y z.\n");
}

}  // namespace
}  // namespace reprise::cli
