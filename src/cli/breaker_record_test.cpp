#include "cli/breaker_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true};
constexpr char kOpen[] =
    R"({"state":"open","open_until":"2026-01-31T08:15:08.000Z","opened":2,"spared":41,)"
    R"("failure_rate":0.952,"ended":63,"canaries_out":0})";

std::string shown(const char* breaker, const Terminal& terminal) {
  Record record(terminal);
  add_breaker(record, JsonView(breaker), terminal, *parse_timestamp("2026-01-31T08:15:00.000Z"));
  return record.text();
}

TEST(BreakerRecord, PeopleReadStateAndCounts) {
  EXPECT_EQ(shown(kOpen, kScreen),
            "Breaker, since the server started\n"
            "  state                 open for another 8s\n"
            "  open until            2026-01-31T08:15:08.000Z\n"
            "  opened                2\n"
            "  failures spared       41\n"
            "  failed in its window  95% of 63 attempts\n"
            "  canaries out          0\n");
}

TEST(BreakerRecord, EachStateHasItsColour) {
  const JsonView never("null");
  EXPECT_EQ(breaker_cell(JsonView("\"closed\""), never, {}).style(), Style::green);
  EXPECT_EQ(breaker_cell(JsonView("\"open\""), never, {}).style(), Style::red);
  EXPECT_EQ(breaker_cell(JsonView("\"trial\""), never, {}).style(), Style::yellow);
  EXPECT_EQ(breaker_cell(JsonView("\"trial\""), never, {}).text(), "trial");
}

TEST(BreakerRecord, AnEmptyWindowHasNoRate) {
  EXPECT_THAT(shown(R"({"state":"closed","failure_rate":0,"ended":0})", kScreen),
              HasSubstr("no attempts yet\n"));
  EXPECT_THAT(shown(R"({"state":"closed","failure_rate":1,"ended":1})", kScreen),
              HasSubstr("100% of 1 attempt\n"));
}

TEST(BreakerRecord, AQueueWithoutOneHasNoSection) {
  EXPECT_EQ(shown("null", kScreen), "");
  EXPECT_EQ(shown("", kScreen), "");
}

TEST(BreakerRecord, PipedItIsAsDeepAsTheReply) {
  EXPECT_EQ(shown(kOpen, kPipe),
            "FIELD\tVALUE\n"
            "breaker.state\topen\n"
            "breaker.open_until\t2026-01-31T08:15:08.000Z\n"
            "breaker.opened\t2\n"
            "breaker.spared\t41\n"
            "breaker.failure_rate\t0.952\n"
            "breaker.ended\t63\n"
            "breaker.canaries_out\t0\n");
  EXPECT_EQ(shown("null", kPipe), "FIELD\tVALUE\nbreaker\t-\n");
  EXPECT_EQ(shown("", kPipe), "FIELD\tVALUE\n");
}

}  // namespace
}  // namespace reprise::cli
