#include "cli/job_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/json_writer.h"

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

FilterFlags parsed(std::vector<std::string> words) {
  CLI::App command;
  FilterFlags filter;
  add_filter_flags(command, filter);
  std::ranges::reverse(words);  // as CLI11 wants them
  command.parse(words);
  return filter;
}

std::string json_of(const FilterFlags& filter) {
  JsonWriter json;
  json.begin_object();
  write_filter_members(json, filter);
  json.end_object();
  return json.take();
}

TEST(FilterFlags, NothingGivenSelectsEverything) {
  const auto filter = parsed({});
  EXPECT_FALSE(filter.any());
  EXPECT_TRUE(filter_parameters(filter).empty());
  EXPECT_EQ(json_of(filter), "{}");
}

TEST(FilterFlags, EveryFlagReachesBothForms) {
  const auto filter =
      parsed({"--error", "time out", "--error-type", "Net", "--fingerprint", "3f9a", "--reason",
              "final", "--older-than", "7d", "--newer-than", "30d", "--header", "a=1"});
  EXPECT_TRUE(filter.any());
  EXPECT_THAT(
      filter_parameters(filter),
      ElementsAre(Pair("error", "time out"), Pair("error_type", "Net"), Pair("fingerprint", "3f9a"),
                  Pair("reason", "final"), Pair("older_than", "7d"), Pair("newer_than", "30d"),
                  Pair("header.a", "1")));
  EXPECT_EQ(json_of(filter),
            R"({"error":"time out","error_type":"Net","fingerprint":"3f9a","reason":"final",)"
            R"("older_than":"7d","newer_than":"30d","headers":{"a":"1"}})");
}

TEST(FilterFlags, HeadersMayBeRepeatedAndHoldAnything) {
  const auto filter = parsed({"--header", "a=1", "--header", "b=x=\"y\""});
  EXPECT_TRUE(filter.any());
  EXPECT_EQ(json_of(filter), R"({"headers":{"a":"1","b":"x=\"y\""}})");
}

}  // namespace
}  // namespace reprise::cli
