#include "worker/external_item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "support/seeds.h"

namespace reprise::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> keys(std::string_view output, std::string_view field = "") {
  const auto items = parse_items(output, field);
  if (!items) return {"error: " + items.error().detail};
  std::vector<std::string> keys;
  for (const ExternalItem& item : *items) keys.push_back(item.key);
  return keys;
}

std::string error(std::string_view output, std::string_view field = "") {
  const auto items = parse_items(output, field);
  if (items) return "";
  EXPECT_EQ(items.error().code, Errc::invalid_field);
  return items.error().detail;
}

TEST(ExternalItem, TheKeyIsTheIdThenTheNumberThenAHash) {
  const auto found = keys(R"([{"number":2,"id":"a"},{"number":3},{"title":"x"},4,"id"])");
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(found[0], "a");
  EXPECT_EQ(found[1], "3");
  EXPECT_EQ(found[2].size(), 32U);
  EXPECT_NE(found[3], found[2]);
  EXPECT_THAT(keys(R"([{"title":"x"}])"), ElementsAre(found[2]));  // the same wherever it stands
}

TEST(ExternalItem, AnIdThatCannotBeAKeyLeavesTheNumber) {
  EXPECT_THAT(keys(R"([{"id":null,"number":1},{"id":"","number":2},{"id":{},"number":3}])"),
              ElementsAre("1", "2", "3"));
}

TEST(ExternalItem, TheGivenFieldIsTheKey) {
  EXPECT_THAT(keys(R"([{"id":1,"ref":"x"},{"id":2,"ref":"y"}])", "ref"), ElementsAre("x", "y"));
}

TEST(ExternalItem, AnItemWithoutTheGivenFieldIsAnErrorThatNamesIt) {
  EXPECT_EQ(error(R"([{"ref":1},{"id":2}])", "ref"),
            "item 1 has no text or number in its field 'ref'");
  for (const char* item :
       {R"({"ref":null})", R"({"ref":""})", R"({"ref":[]})", R"({"ref":true})", "7", R"("ref")"}) {
    EXPECT_THAT(error("[" + std::string(item) + "]", "ref"), HasSubstr("item 0")) << item;
  }
}

TEST(ExternalItem, SevenAndItsTextAreOne) {
  EXPECT_THAT(keys(R"([{"id":7},{"id":"7"},{"id":8}])"), ElementsAre("7", "8"));
}

TEST(ExternalItem, OfItemsWithOneKeyTheFirstCounts) {
  const auto items = *parse_items(R"([{"id":1,"n":"first"},{"id":1,"n":"second"}])", "");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].json, R"({"id":1,"n":"first"})");
  EXPECT_EQ(keys("[{},{},[]]").size(), 2U);  // equal ones have equal hashes
}

TEST(ExternalItem, BigNumbersStayAsTheyArePrinted) {
  EXPECT_THAT(
      keys(R"([{"id":12345678901234567890123},{"id":12345678901234567890124},{"id":-1.50}])"),
      ElementsAre("12345678901234567890123", "12345678901234567890124", "-1.50"));
}

TEST(ExternalItem, TextIsReadWithItsEscapes) {
  EXPECT_THAT(keys(R"([{"id":"gr\u00fcn"},{"id":"grün"},{"id":"\ud83d\ude00"},{"id":"a\"b"}])"),
              ElementsAre("grün", "\U0001F600", "a\"b"));
}

TEST(ExternalItem, ItemsKeepTheirBytes) {
  const auto items = *parse_items(" [ {\"id\" : 1.0 ,\n \"x\": [ ] } ] \n", "");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].json, "{\"id\" : 1.0 ,\n \"x\": [ ] }");
}

TEST(ExternalItem, AnEmptyListIsFine) {
  EXPECT_THAT(keys("[]"), IsEmpty());
  EXPECT_THAT(keys(" [\n] "), IsEmpty());
}

TEST(ExternalItem, WhatIsNoJsonIsAnErrorThatShowsIt) {
  EXPECT_THAT(error(""), HasSubstr("not JSON"));
  EXPECT_THAT(error("gh: not logged in"), HasSubstr("it begins: gh: not logged in"));
  EXPECT_THAT(error("[1,2"), HasSubstr("not JSON"));
  EXPECT_THAT(error("[1] [2]"), HasSubstr("not JSON"));
  EXPECT_THAT(error("[\"\xff\"]"), HasSubstr("not JSON"));
  EXPECT_THAT(error(R"([{"id":"\ud800"}])"), HasSubstr("not JSON"));
  EXPECT_LT(error(std::string(100'000, 'x')).size(), 1000U);
  EXPECT_THAT(error(std::string(100'000, '[')), HasSubstr("not JSON"));
}

TEST(ExternalItem, WhatIsNoArrayIsAnError) {
  EXPECT_THAT(error(R"({"items":[]})"), HasSubstr("not a JSON array"));
  EXPECT_THAT(error("null"), HasSubstr("not a JSON array"));
  EXPECT_THAT(error("7"), HasSubstr("not a JSON array"));
}

// --- Records -------------------------------------------------------------------------------------

void expect_equal(const ItemRecord& a, const ItemRecord& b) {
  EXPECT_EQ(a.ns, b.ns);
  EXPECT_EQ(a.queue, b.queue);
  EXPECT_EQ(a.worker, b.worker);
  EXPECT_EQ(a.item.key, b.item.key);
  EXPECT_EQ(a.item.json, b.item.json);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.run, b.run);
  EXPECT_EQ(a.error, b.error);
}

TEST(ExternalItem, ARecordIsTheSameAfterwards) {
  SeededRandom random(7);
  const std::vector<std::string> pieces = {
      "a", "\"", "\\", "\n", "ü", "\U0001F600", "{}", "/", "\t", "\x01", std::string(1, '\0'), " "};
  const auto text = [&] {
    std::string made;
    for (std::uint64_t left = random.below(12); left > 0; --left) {
      made += pieces[random.below(pieces.size())];
    }
    return made;
  };
  for (std::uint64_t i = 0; i < test::seed_count(2000); ++i) {
    const ItemRecord record{.ns = text(),
                            .queue = text(),
                            .worker = text(),
                            .item = {.key = text(), .json = Json(text()).dump()},
                            .phase = static_cast<ItemPhase>(random.below(4)),
                            .run = text(),
                            .error = text()};
    const auto read = decode_item(encode_item(record));
    ASSERT_TRUE(read.has_value());
    expect_equal(*read, record);
  }
}

TEST(ExternalItem, ADamagedRecordIsAnErrorOrARecordAndNeverACrash) {
  const std::string whole = encode_item({.ns = "shop",
                                         .queue = "bugs",
                                         .worker = "fixer",
                                         .item = {.key = "7", .json = R"({"id":7})"},
                                         .phase = ItemPhase::running,
                                         .run = "R",
                                         .error = ""});
  for (std::size_t end = 0; end < whole.size(); ++end) {
    const auto cut = decode_item(std::string_view(whole).substr(0, end));
    ASSERT_FALSE(cut.has_value()) << end;
    EXPECT_EQ(cut.error().code, Errc::corrupt);
  }
  SeededRandom random(7);
  for (std::uint64_t i = 0; i < test::seed_count(5000); ++i) {
    std::string damaged = whole;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    if (const auto read = decode_item(damaged)) {
      EXPECT_LE(static_cast<int>(read->phase), static_cast<int>(ItemPhase::failed));
    }
  }
  EXPECT_FALSE(decode_item(R"({"phase":"unknown"})").has_value());
  EXPECT_FALSE(decode_item("[]").has_value());
}

TEST(ExternalItem, NotesHaveNamesOfTheirOwnWhateverTheKey) {
  const std::string one = item_note_key("shop", "bugs", "7");
  EXPECT_TRUE(one.starts_with("item/shop/bugs/"));
  EXPECT_EQ(one, item_note_key("shop", "bugs", "7"));
  EXPECT_NE(one, item_note_key("shop", "bugs", "8"));
  EXPECT_NE(one, item_note_key("shop", "tasks", "7"));
  EXPECT_EQ(item_note_key("shop", "bugs", std::string(100'000, 'x')).size(), one.size());
}

}  // namespace
}  // namespace reprise::worker
