#include "cli/queue_config_flags.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <string>
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

TEST(QueueConfigFlags, SchedulingHasItsPlaceToo) {
  EXPECT_EQ(sent_for({"--concurrency", "50", "--concurrency-per-key", "5"}),
            R"({"concurrency":50,"concurrency_per_key":5})");
  EXPECT_EQ(
      sent_for({"--breaker", "failure_rate=0.5,window=1m,min=20,pause=30s,canaries=1"}),
      R"({"breaker":{"failure_rate":0.5,"window":"1m","min":20,"pause":"30s","canaries":1}})");
  for (const char* word : {"none", "default"}) {
    EXPECT_EQ(sent_for({"--concurrency", word, "--concurrency-per-key", word, "--breaker", word}),
              R"({"concurrency":null,"concurrency_per_key":null,"breaker":null})");
  }
}

TEST(QueueConfigFlags, DefaultAndNonePutAFieldBack) {
  EXPECT_EQ(sent_for({"--retry-attempts", "default", "--backoff-factor", "none"}),
            R"({"retry":{"attempts":null,"backoff":{"factor":null}}})");
  EXPECT_EQ(sent_for({"--retry-in-flight", "none", "--dead-letter-queue", "none"}),
            R"({"fetch":{"retry_in_flight":null},"dead_letter_queue":null})");
}

TEST(QueueConfigFlags, NamesOfFieldsAreListedOrRepeated) {
  EXPECT_EQ(sent_for({"--vars", "id,customer"}), R"({"vars":["id","customer"]})");
  EXPECT_EQ(sent_for({"--vars", "id", "--vars", "a.b,c d"}), R"({"vars":["id","a.b","c d"]})");
  for (const char* word : {"none", "default"}) {
    EXPECT_EQ(sent_for({"--vars", word, "--defaults", word}), R"({"vars":null,"defaults":null})");
  }
  for (const char* bad : {"", ",", "a,", ",a", "a,,b", "\xFF"}) {
    EXPECT_THROW(sent_for({"--vars", bad}), CLI::ParseError) << bad;
  }
}

TEST(QueueConfigFlags, DefaultsAreSentAsTheyAreWritten) {
  EXPECT_EQ(sent_for({"--defaults", R"({"a": 1.0, "b":"x,y"})"}),
            R"({"defaults":{"a": 1.0, "b":"x,y"}})");
  for (const char* bad : {"", "[]", "1", "null", "{", R"({"a":1,"a":2})", "a=1"}) {
    EXPECT_THROW(sent_for({"--defaults", bad}), CLI::ParseError) << bad;
  }
}

class QueueHookFlags : public ::testing::Test {
 protected:
  QueueHookFlags() { std::ofstream(path_) << "function on_failure()\nend\n"; }
  ~QueueHookFlags() override { std::filesystem::remove(path_); }

  const std::string path_ = ::testing::TempDir() + "queue_hook_flags." + std::to_string(getpid());
};

TEST_F(QueueHookFlags, SendWhatTheFilesHold) {
  EXPECT_EQ(sent_for({"--on-failure-file", path_, "--on-hook-error", "dlq", "--hook-timeout-ms",
                      "50", "--hook-memory", "2MiB"}),
            R"({"on_failure":"function on_failure()\nend\n","on_hook_error":"dlq",)"
            R"("hook_timeout_ms":50,"hook_memory_bytes":2097152})");
  EXPECT_EQ(sent_for({"--on-enqueue-file", path_, "--on-failure-file", path_}),
            R"({"on_enqueue":"function on_failure()\nend\n",)"
            R"("on_failure":"function on_failure()\nend\n"})");
}

TEST_F(QueueHookFlags, AreTakenAwayLikeOthers) {
  EXPECT_EQ(
      sent_for({"--on-enqueue-file", "none", "--on-failure-file", "default", "--on-hook-error",
                "default", "--hook-timeout-ms", "none", "--hook-memory", "default"}),
      R"({"on_enqueue":null,"on_failure":null,"on_hook_error":null,)"
      R"("hook_timeout_ms":null,"hook_memory_bytes":null})");
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
                                                                 {"--on-hook-error", "panic"},
                                                                 {"--concurrency", "few"},
                                                                 {"--concurrency", "unlimited"},
                                                                 {"--concurrency-per-key", "-1"},
                                                                 {"--breaker", "min=none"},
                                                                 {"--breaker", ""},
                                                                 {"--hook-timeout-ms", "1.5"},
                                                                 {"--on-failure-file", "/none"},
                                                                 {"--dead-letter-queue", ""}}) {
    EXPECT_THROW(sent_for(words), CLI::ParseError) << words[0] << words[1];
  }
}

}  // namespace
}  // namespace reprise::cli
