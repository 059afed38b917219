#include "cli/event_group.h"

#include <gtest/gtest.h>

#include "base/json_view.h"
#include "spool/event.h"

namespace reprise::cli {
namespace {

TEST(MakeEvent, ItsTimeIsThatOfItsId) {
  const auto id = decode_ulid("01KA5QH3M5T6W0V8Z2Y4X6C8B1");
  ASSERT_TRUE(id);
  const auto event = make_event(*id, "order.created", R"({"id": 7.0})");
  ASSERT_TRUE(event);
  const JsonView json(*event);
  EXPECT_EQ(json["id"].string_or(""), "01KA5QH3M5T6W0V8Z2Y4X6C8B1");
  EXPECT_EQ(json["type"].string_or(""), "order.created");
  EXPECT_EQ(json["timestamp"].string_or(""), format_timestamp(ulid_time(*id)));
  EXPECT_EQ(json["data"].raw(), R"({"id": 7.0})");
}

TEST(MakeEvent, OneThatFitsNoRequestIsRefusedWithItsSize) {
  const std::string empty = *make_event({}, "t", R"("")");
  const std::string most(spool::kMaxEventBytes - empty.size(), 'x');
  EXPECT_TRUE(make_event({}, "t", '"' + most + '"'));
  const auto refused = make_event({}, "t", '"' + most + "x\"");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::payload_too_large);
  EXPECT_NE(refused.error().detail.find(std::to_string(spool::kMaxEventBytes + 1)),
            std::string::npos);
}

TEST(MakeEvent, OneThatNestsTooDeepForARequestIsRefused) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + R"("\\[\"]")" + std::string(depth, ']');
  };
  EXPECT_TRUE(make_event({}, "t", nested(61)));
  const auto refused = make_event({}, "t", nested(62));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_request);
  EXPECT_TRUE(make_event({}, "t", "[" + std::string(500, '1') + ",[],[],{}]"));
}

}  // namespace
}  // namespace reprise::cli
