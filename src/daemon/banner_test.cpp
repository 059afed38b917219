#include "daemon/banner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace reprise::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

const BannerFacts kFacts{.command = "reprise",
                         .address = "127.0.0.1:7333",
                         .data = "./.reprise-data",
                         .durability = "sync",
                         .token_file = "",
                         .jobs = 12,
                         .recovery = std::chrono::milliseconds(35)};

TEST(Banner, TellsWhatAPersonWantsToKnow) {
  const std::string text = banner(kFacts);
  EXPECT_THAT(text, HasSubstr("http://127.0.0.1:7333"));
  EXPECT_THAT(text, HasSubstr("./.reprise-data (12 jobs recovered in 35ms)"));
  EXPECT_THAT(text, HasSubstr("durability  sync"));
}

TEST(Banner, NamesTheBeanstalkAddressWhereThereIsOne) {
  EXPECT_THAT(banner(kFacts), Not(HasSubstr("beanstalk")));
  BannerFacts facts = kFacts;
  facts.beanstalk = "127.0.0.1:11300";
  EXPECT_THAT(banner(facts), HasSubstr("\n  beanstalk   on 127.0.0.1:11300\n\nTry"));
}

TEST(Banner, TheCommandsAreTheOnesOfTheQuickstart) {
  std::ifstream in(std::filesystem::path(REPRISE_SOURCE_DIR) / "README.md");
  const std::string readme{std::istreambuf_iterator<char>(in), {}};
  std::string text = banner(kFacts);
  text.erase(0, text.find("Try, in another terminal:\n"));
  text.erase(0, text.find('\n') + 1);
  int commands = 0;
  for (; !text.empty(); text.erase(0, text.find('\n') + 1), ++commands) {
    const std::string command = text.substr(2, text.find('\n') - 2);
    EXPECT_THAT(readme, HasSubstr("\n$ " + command + "\n"));
  }
  EXPECT_EQ(commands, 3);
}

TEST(Banner, CommandsNameTheServerOnlyWhenItIsNotTheDefault) {
  EXPECT_THAT(banner(kFacts), Not(HasSubstr("--server")));
  BannerFacts facts = kFacts;
  facts.address = "127.0.0.1:7444";
  EXPECT_THAT(banner(facts), HasSubstr("queue claim orders --server http://127.0.0.1:7444\n"));
}

TEST(Banner, CommandsGoToLoopbackWhenTheServerListensEverywhere) {
  EXPECT_EQ(client_url("0.0.0.0:7333"), "http://127.0.0.1:7333");
  EXPECT_EQ(client_url("[::]:7333"), "http://[::1]:7333");
  EXPECT_EQ(client_url("192.0.2.1:80"), "http://192.0.2.1:80");
}

TEST(Banner, CommandsBringTheTokenFile) {
  BannerFacts facts = kFacts;
  facts.token_file = "tokens";
  EXPECT_THAT(banner(facts), HasSubstr("queue claim orders --token-file tokens\n"));
}

}  // namespace
}  // namespace reprise::daemon
