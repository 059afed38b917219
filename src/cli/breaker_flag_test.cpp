#include "cli/breaker_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_writer.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string sent_for(const std::string& text) {
  EXPECT_EQ(breaker_problem(text), "");
  JsonWriter json;
  write_breaker(json, text);
  return json.take();
}

TEST(BreakerFlag, HasAllFields) {
  EXPECT_EQ(sent_for("failure_rate=0.25,window=2m,min=50,pause=1m,canaries=3"),
            R"({"failure_rate":0.25,"window":"2m","min":50,"pause":"1m","canaries":3})");
}

TEST(BreakerFlag, WhatIsLeftOutIsSentAsItsDefault) {
  EXPECT_EQ(sent_for("pause=1h30m,min=1000000"),
            R"({"failure_rate":null,"window":null,"min":1000000,"pause":"1h30m","canaries":null})");
  EXPECT_EQ(sent_for("on"),
            R"({"failure_rate":null,"window":null,"min":null,"pause":null,"canaries":null})");
}

TEST(BreakerFlag, SaysWhichFieldWasMeant) {
  EXPECT_EQ(breaker_problem("min=5,windw=1m"), "unknown field 'windw'; did you mean 'window'?");
  EXPECT_THAT(breaker_problem("failures=5"), StartsWith("unknown field 'failures'"));
  EXPECT_EQ(breaker_problem("zzz"),
            "unknown field 'zzz'; there are failure_rate, window, min, pause, canaries");
}

TEST(BreakerFlag, EachFieldHasOneValue) {
  for (const char* text : {"min", "min=", "pause=1s,min", "min,pause=1s"}) {
    EXPECT_EQ(breaker_problem(text), "min has no value; write min=VALUE") << text;
  }
  EXPECT_EQ(breaker_problem("min=5,pause=1s,min=5"), "min is given twice");
  for (const char* text : {"", "min=5,", ",min=5", "=5"}) {
    EXPECT_THAT(breaker_problem(text), HasSubstr("a field is missing")) << text;
  }
}

TEST(BreakerFlag, ValuesThatNoServerCouldTakeNameTheirField) {
  for (const char* text :
       {"failure_rate=half", "failure_rate=50%", "failure_rate=inf", "window=soon", "min=1.5",
        "min=-1", "pause=long", "canaries=some", "canaries=1=2"}) {
    const std::string name(text, std::string_view(text).find('='));
    EXPECT_THAT(breaker_problem(text), StartsWith(name + ": ")) << text;
  }
}

TEST(BreakerFlag, OnStandsAlone) {
  EXPECT_NE(breaker_problem("on,min=5"), "");
  EXPECT_NE(breaker_problem("min=5,on"), "");
  EXPECT_NE(breaker_problem("off"), "");
}

}  // namespace
}  // namespace reprise::cli
