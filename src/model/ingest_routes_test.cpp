#include "model/ingest_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

IngestRoutes routes(const std::vector<std::string>& texts) {
  auto parsed = IngestRoutes::parse(texts);
  EXPECT_TRUE(parsed) << parsed.error().detail;
  return parsed ? *parsed : IngestRoutes();
}

std::string problem(const std::vector<std::string>& texts) {
  const auto parsed = IngestRoutes::parse(texts);
  EXPECT_FALSE(parsed);
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, Errc::invalid_field);
  return parsed.error().detail;
}

// Whether a pattern takes a type.
bool takes(const std::string& pattern, std::string_view type) {
  return routes({pattern + "=q"}).queue_of(type) == "q";
}

TEST(IngestRoutes, WithoutAnyAllGoesToEvents) {
  EXPECT_EQ(IngestRoutes().queue_of("order.created"), "events");
  EXPECT_EQ(routes({"order.*=orders"}).queue_of("invoice.paid"), "events");
}

TEST(IngestRoutes, AStarStandsForAnyCharactersAlsoNone) {
  EXPECT_TRUE(takes("order.*", "order.created"));
  EXPECT_TRUE(takes("order.*", "order."));
  EXPECT_FALSE(takes("order.*", "order"));
  EXPECT_FALSE(takes("order.*", "reorder.created"));
  EXPECT_TRUE(takes("*.failed", "a.b.failed"));
  EXPECT_FALSE(takes("*.failed", "a.failed.again"));
  EXPECT_TRUE(takes("a*b*c", "abc"));
  EXPECT_TRUE(takes("a*b*c", "a-b-b-c-c"));
  EXPECT_FALSE(takes("a*b*c", "a-c-b"));
  EXPECT_TRUE(takes("**", "x"));
  EXPECT_TRUE(takes("*ab", "aab"));
  EXPECT_FALSE(takes("abc", "abcd"));
  EXPECT_FALSE(takes("abcd", "abc"));
  EXPECT_FALSE(takes("Order", "order"));
}

TEST(IngestRoutes, TheMostOtherCharactersCountWhateverTheOrder) {
  for (const auto& given : {std::vector<std::string>{"order.*=orders", "order.refund=refunds",
                                                     "*.failed=alarms", "*=rest"},
                            std::vector<std::string>{"*=rest", "*.failed=alarms",
                                                     "order.refund=refunds", "order.*=orders"}}) {
    const IngestRoutes table = routes(given);
    EXPECT_EQ(table.queue_of("order.refund"), "refunds");
    EXPECT_EQ(table.queue_of("order.created"), "orders");
    EXPECT_EQ(table.queue_of("order.failed"), "alarms") << "seven characters against six";
    EXPECT_EQ(table.queue_of("x"), "rest");
  }
}

TEST(IngestRoutes, OfEqualsTheFirstInTheAlphabetCounts) {
  EXPECT_EQ(routes({"b*=second", "*b=first"}).queue_of("b"), "first");
  EXPECT_EQ(routes({"a*c=second", "a*b*=first"}).queue_of("abc"), "first");
}

TEST(IngestRoutes, ACharacterOfManyBytesIsOne) {
  EXPECT_EQ(routes({"ü*=two-bytes", "*ab=two-characters"}).queue_of("üab"), "two-characters");
}

TEST(IngestRoutes, APatternMayHoldAnEqualsSign) {
  EXPECT_EQ(routes({"a=b=q"}).queue_of("a=b"), "q");
}

TEST(IngestRoutes, TextsReadBackAsTheSameTable) {
  const IngestRoutes table = routes({"*=rest", "order.*=orders", "a=b=q"});
  EXPECT_THAT(table.texts(), ElementsAre("order.*=orders", "a=b=q", "*=rest"));
  EXPECT_EQ(routes(table.texts()).texts(), table.texts());
}

TEST(IngestRoutes, BadOnesAreNamedWithTheFix) {
  EXPECT_THAT(problem({"order.*"}),
              AllOf(StartsWith("route 'order.*': "), HasSubstr("write PATTERN=QUEUE")));
  EXPECT_EQ(problem({"=orders"}), "route '=orders': the pattern must not be empty");
  EXPECT_THAT(problem({"a*=my queue"}), HasSubstr("queue name 'my queue' may hold only letters"));
  EXPECT_THAT(problem({"a*="}), HasSubstr("queue name is empty"));
  EXPECT_THAT(problem({"a\n=q"}), HasSubstr("must not hold control characters"));
  EXPECT_THAT(problem({"\xFF=q"}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(problem({std::string(201, 'a') + "=q"}), HasSubstr("201 bytes"));
  EXPECT_EQ(problem({"a=x", "b=y", "a=z"}),
            "route 'a=z': the pattern 'a' is given twice; keep one");
}

}  // namespace
}  // namespace reprise
