#include "cli/namespace_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/cli_run.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using test::run_cli;
using ::testing::HasSubstr;

// A directory of its own with the project "shop" in it, and the working directory as it was.
class NamespaceRule : public ::testing::Test {
 protected:
  NamespaceRule() : before_(fs::current_path()) {
    std::string pattern = (fs::temp_directory_path() / "namespace_rule_XXXXXX").string();
    top_ = fs::canonical(::mkdtemp(pattern.data()));
    fs::create_directories(shop() / ".reprise");
    fs::create_directories(shop() / "deep" / "er");
    fs::create_directories(top_ / "outside");
    unsetenv("REPRISE_PROJECT");
  }
  ~NamespaceRule() override {
    unsetenv("REPRISE_PROJECT");
    fs::current_path(before_);
    fs::remove_all(top_);
  }

  fs::path shop() const { return top_ / "shop"; }
  fs::path outside() const { return top_ / "outside"; }
  void write_config(const std::string& text) const {
    std::ofstream(shop() / ".reprise" / "config.toml") << text;
  }
  static NamespaceChoice chosen(const std::string& given, const fs::path& directory) {
    auto choice = choose_namespace(given, directory.string());
    EXPECT_TRUE(choice) << choice.error().detail;
    return choice ? *choice : NamespaceChoice{};
  }

  fs::path before_;
  fs::path top_;
};

TEST_F(NamespaceRule, OutsideOfAProjectItIsTheDefault) {
  const auto choice = chosen("", outside());
  EXPECT_EQ(choice.ns, "default");
  EXPECT_EQ(choice.root, "");
  EXPECT_FALSE(choice.own_name);
}

TEST_F(NamespaceRule, AProjectIsFoundUpwardsAndNamedByItsDirectory) {
  for (const auto& directory : {shop(), shop() / "deep" / "er", shop() / ".reprise"}) {
    const auto choice = chosen("", directory);
    EXPECT_EQ(choice.ns, "shop") << directory;
    EXPECT_EQ(choice.root, shop().string());
    EXPECT_TRUE(choice.own_name);
  }
}

TEST_F(NamespaceRule, ItsConfigMayNameIt) {
  write_config("[project]\nname = \"market\"\n");
  EXPECT_EQ(chosen("", shop() / "deep").ns, "market");
}

TEST_F(NamespaceRule, AFlagWinsOverTheEnvironmentWhichWinsOverTheProject) {
  setenv("REPRISE_PROJECT", "env", 1);
  EXPECT_EQ(chosen("", shop()).ns, "env");
  EXPECT_EQ(chosen("", outside()).ns, "env");
  const auto choice = chosen("flag", shop());
  EXPECT_EQ(choice.ns, "flag");
  EXPECT_EQ(choice.root, shop().string());
  EXPECT_FALSE(choice.own_name);
  setenv("REPRISE_PROJECT", "", 1);
  EXPECT_EQ(chosen("", shop()).ns, "shop");
}

TEST_F(NamespaceRule, ABrokenConfigIsInTheWayOnlyWhereTheNameIsNeeded) {
  write_config("broken =");
  const auto choice = choose_namespace("", shop().string());
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().detail, HasSubstr(shop().string()));
  EXPECT_THAT(choice.error().detail, HasSubstr("--project"));
  EXPECT_EQ(chosen("flag", shop()).ns, "flag");

  fs::current_path(shop());
  const char* const nowhere = "http://127.0.0.1:1";
  EXPECT_EQ(run_cli({"queue", "list", "--server", nowhere}).exit_code, 2);
  EXPECT_THAT(run_cli({"queue", "list", "--server", nowhere}).err, HasSubstr("config.toml"));
  EXPECT_EQ(run_cli({"queue", "list", "--server", nowhere, "-n", "x"}).exit_code, 3);
  EXPECT_EQ(run_cli({"queue", "list", "--server", nowhere, "--project", "x"}).exit_code, 3);
  for (const char* command : {"status", "events", "audit"}) {
    EXPECT_EQ(run_cli({command, "--server", nowhere}).exit_code, 3) << command;
  }
  EXPECT_EQ(run_cli({"project", "list", "--server", nowhere}).exit_code, 3);
  EXPECT_EQ(run_cli({"run", "show", "3K9M", "--server", nowhere}).exit_code, 3);
  EXPECT_EQ(run_cli({"project", "add", "--server", nowhere}).exit_code, 2);
}

TEST_F(NamespaceRule, BothFlagsAreWrongUsage) {
  const auto ran = run_cli({"queue", "list", "-n", "a", "--project", "b"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--namespace"));
  EXPECT_THAT(ran.err, HasSubstr("--project"));
}

TEST_F(NamespaceRule, AVariableIsNotAtOddsWithAFlag) {
  setenv("REPRISE_PROJECT", "env", 1);
  EXPECT_EQ(run_cli({"queue", "list", "-n", "a", "--server", "http://127.0.0.1:1"}).exit_code, 3);
}

}  // namespace
}  // namespace reprise::cli
