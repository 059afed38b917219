#include "cli/queue_config_flags.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <vector>

namespace reprise::cli {
namespace {

std::string sent_for(std::vector<std::string> words) {
  CLI::App command;
  ConfigFlags flags;
  add_config_flags(command, flags);
  std::ranges::reverse(words);  // as CLI11 wants them
  command.parse(words);
  return config_json(flags);
}

TEST(QueueConfigFlags, OnlyWhatIsGivenIsSent) {
  EXPECT_EQ(sent_for({}), "{}");
  EXPECT_EQ(sent_for({"--lease", "1m"}), R"({"lease":"1m"})");
}

TEST(QueueConfigFlags, EachHasItsPlaceInTheConfig) {
  EXPECT_EQ(sent_for({"--retry-attempts", "3", "--retry-cooldown", "10s"}),
            R"({"retry":{"attempts":3,"cooldown":"10s"}})");
  EXPECT_EQ(
      sent_for({"--max-retries", "unlimited", "--backoff-base", "2s", "--backoff-factor", "1.5",
                "--backoff-max", "5m", "--backoff-jitter", ".25"}),
      R"({"retry":{"max_retries":"unlimited","backoff":{"base":"2s","factor":1.5,"max":"5m","jitter":0.25}}})");
  EXPECT_EQ(sent_for({"--retry-share", "0.5", "--retry-in-flight", "10"}),
            R"({"fetch":{"retry_share":0.5,"retry_in_flight":10}})");
  EXPECT_EQ(
      sent_for({"--dead-letter-queue", "dlq", "--keep-dead", "7d", "--max-dead", "9",
                "--keep-completed", "1h", "--on-dead-webhook", "http://x/y"}),
      R"({"dead_letter_queue":"dlq","keep_dead":"7d","max_dead":9,"keep_completed":"1h","on_dead_webhook":"http://x/y"})");
}

TEST(QueueConfigFlags, DefaultAndNonePutAFieldBack) {
  EXPECT_EQ(sent_for({"--retry-attempts", "default", "--backoff-factor", "none"}),
            R"({"retry":{"attempts":null,"backoff":{"factor":null}}})");
  EXPECT_EQ(sent_for({"--retry-in-flight", "none", "--dead-letter-queue", "none"}),
            R"({"fetch":{"retry_in_flight":null},"dead_letter_queue":null})");
}

TEST(QueueConfigFlags, WhatExcludesEachOtherIsRefused) {
  EXPECT_THROW(sent_for({"--retry-attempts", "3", "--max-retries", "2"}), CLI::ParseError);
  EXPECT_THROW(sent_for({"--retry-cooldown", "3s", "--backoff-max", "2s"}), CLI::ParseError);
}

TEST(QueueConfigFlags, WhatNoServerCouldTakeIsRefused) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--max-retries", "many"},
                                                                 {"--backoff-factor", "4x"},
                                                                 {"--backoff-factor", "inf"},
                                                                 {"--backoff-base", "soon"},
                                                                 {"--retry-share", "unlimited"},
                                                                 {"--max-dead", "1.5"},
                                                                 {"--dead-letter-queue", ""}}) {
    EXPECT_THROW(sent_for(words), CLI::ParseError) << words[0] << words[1];
  }
}

}  // namespace
}  // namespace reprise::cli
