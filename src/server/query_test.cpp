#include "server/query.h"

#include <gtest/gtest.h>

#include <chrono>

namespace reprise::server {
namespace {

using std::chrono::seconds;

Query query(std::string_view text) {
  auto parsed = Query::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? std::move(*parsed) : Query();
}

TEST(PercentDecode, DecodesOnce) {
  EXPECT_EQ(percent_decode("a%20b%2f%2B+%2525", false), "a b/++%25");
  EXPECT_EQ(percent_decode("a+b", true), "a b");
}

TEST(PercentDecode, RefusesBadEscapes) {
  for (const char* text : {"%", "%2", "%zz", "a%2", "%+1", "% 1", "%-1", "%0x"}) {
    EXPECT_EQ(percent_decode(text, false), std::nullopt) << text;
  }
}

TEST(Query, TakesParametersByName) {
  Query parameters = query("a=1&b=x%26y&&flag&empty=");
  EXPECT_EQ(parameters.take("a"), "1");
  EXPECT_EQ(parameters.take("b"), "x&y");
  EXPECT_EQ(parameters.take("flag"), "");
  EXPECT_EQ(parameters.take("empty"), "");
  EXPECT_EQ(parameters.take("absent"), std::nullopt);
  EXPECT_TRUE(parameters.finish());
}

TEST(Query, NamesWhatNobodyTookAndWhatWasMeant) {
  Query parameters = query("nmespace=x");
  parameters.take("namespace");
  const Status status = parameters.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::unknown_field);
  EXPECT_NE(status.error().detail.find("'nmespace'; did you mean 'namespace'?"), std::string::npos);
}

TEST(Query, RefusesARepeatedParameterUnlessItMayBe) {
  Query once = query("a=1&a=2");
  once.take("a");
  EXPECT_EQ(once.finish().error().code, Errc::invalid_request);
  Query often = query("a=1&a=2");
  EXPECT_EQ(often.take_all("a"), (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(often.finish());
}

TEST(Query, ReadsNumbersWithinTheirRange) {
  EXPECT_EQ(query("n=7").take_number("n", 1, 10), 7U);
  for (const char* text :
       {"n=0", "n=11", "n=-1", "n=many", "n=1e2", "n=", "n=5x", "n=+5", "n=99999999999999999999"}) {
    Query parameters = query(text);
    EXPECT_EQ(parameters.take_number("n", 1, 10), std::nullopt) << text;
    EXPECT_EQ(parameters.finish().error().code, Errc::invalid_field) << text;
  }
}

TEST(Query, ReadsDurations) {
  EXPECT_EQ(query("d=5m").take_duration("d"), seconds(300));
  Query bad = query("d=soon");
  EXPECT_EQ(bad.take_duration("d"), std::nullopt);
  EXPECT_EQ(bad.finish().error().code, Errc::invalid_field);
}

TEST(Query, GathersPrefixedParameters) {
  Query parameters = query("header.tenant=a&header.x-y=%20&other=1");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(parameters.take_prefixed("header."), (Pairs{{"tenant", "a"}, {"x-y", " "}}));
  EXPECT_FALSE(parameters.finish());
}

TEST(Query, RefusesBadEscapesAndBytesThatAreNoText) {
  for (const char* text : {"a=%", "%zz=1", "a=%FF", "%C3=1"}) {
    const auto parsed = Query::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid_request);
  }
}

}  // namespace
}  // namespace reprise::server
