#include "cli/reply_fields.h"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true};

TEST(ReplyFields, GoAsDeepAsTheReply) {
  Record record(kPipe);
  add_fields(record, "retry", JsonView(R"({"attempts":3,"backoff":{"base":"1s","max":null}})"));
  add_fields(record, "operations", JsonView(R"([{"id":7},{"id":8}])"));
  EXPECT_EQ(record.text(),
            "FIELD\tVALUE\n"
            "retry.attempts\t3\n"
            "retry.backoff.base\t1s\n"
            "retry.backoff.max\t-\n"
            "operations.0.id\t7\n"
            "operations.1.id\t8\n");
}

TEST(ReplyFields, WhatIsEmptyIsShownAsItIs) {
  Record record(kPipe);
  add_fields(record, "filter", JsonView("{}"));
  add_fields(record, "ids", JsonView("[]"));
  EXPECT_EQ(record.text(), "FIELD\tVALUE\nfilter\t{}\nids\t[]\n");
}

TEST(ReplyFields, AnObjectWithoutMembersMayEndBeforeItsLabel) {
  Record record(kPipe);
  add_fields(record, "config", JsonView("{}"), 7);
  add_fields(record, "totals", JsonView(), 7);
  EXPECT_EQ(record.text(), "FIELD\tVALUE\nconfig\t{}\ntotals\t-\n");
}

TEST(ReplyFields, LabelsAreWords) {
  Record record(kScreen);
  add_fields(record, "config.retry", JsonView(R"({"backoff":{"base_x":1}})"), 7);
  EXPECT_EQ(record.text(), "  retry backoff base x  1\n");
}

}  // namespace
}  // namespace reprise::cli
