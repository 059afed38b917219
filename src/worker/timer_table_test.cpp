#include "worker/timer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace reprise::worker {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

Timestamp at(int second) { return Timestamp(seconds(second)); }

class TimerTableTest : public testing::Test {
 protected:
  void set(const std::string& name, int second) {
    table_.set(name, at(second), [this, name] { fired_.push_back(name); });
  }
  std::vector<std::string> fire(int second) {
    fired_.clear();
    while (auto task = table_.take_due(at(second))) (*task)();
    return fired_;
  }
  std::vector<std::string> names(std::string_view prefix) const {
    std::vector<std::string> names;
    for (const auto& entry : table_.list(prefix)) names.push_back(entry.name);
    return names;
  }

  TimerTable table_;
  std::vector<std::string> fired_;
};

TEST_F(TimerTableTest, HasNothingAtFirst) {
  EXPECT_EQ(table_.next_due(), std::nullopt);
  EXPECT_THAT(fire(1000), IsEmpty());
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(TimerTableTest, FiresWhatIsDueInTheOrderOfTimes) {
  set("c", 3);
  set("a", 2);
  set("b", 1);
  set("later", 4);
  EXPECT_EQ(table_.next_due(), at(1));
  EXPECT_THAT(fire(3), ElementsAre("b", "a", "c"));
  EXPECT_EQ(table_.next_due(), at(4));
  EXPECT_THAT(fire(3), IsEmpty());
}

TEST_F(TimerTableTest, FiresTwoOfOneTimeBoth) {
  set("b", 1);
  set("a", 1);
  EXPECT_THAT(fire(1), ElementsAre("a", "b"));
}

TEST_F(TimerTableTest, ATimerThatIsSetAgainMovesAndDoesTheNewThing) {
  set("a", 1);
  bool renewed = false;
  table_.set("a", at(5), [&] { renewed = true; });
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(table_.next_due(), at(5));
  EXPECT_THAT(fire(4), IsEmpty());
  EXPECT_THAT(fire(5), IsEmpty());
  EXPECT_TRUE(renewed);
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(TimerTableTest, ATimerMovesToAnEarlierTimeToo) {
  set("a", 5);
  set("a", 1);
  EXPECT_THAT(fire(1), ElementsAre("a"));
  EXPECT_EQ(table_.next_due(), std::nullopt);
}

TEST_F(TimerTableTest, ACancelledOneNeverFires) {
  set("a", 1);
  set("b", 1);
  EXPECT_TRUE(table_.cancel("a"));
  EXPECT_THAT(fire(1), ElementsAre("b"));
}

TEST_F(TimerTableTest, CancellingOneThatIsNotThereIsNoError) {
  EXPECT_FALSE(table_.cancel("a"));
  set("a", 1);
  fire(1);
  EXPECT_FALSE(table_.cancel("a"));
}

TEST_F(TimerTableTest, ATaskMaySetItsOwnTimerAgain) {
  int times = 0;
  std::function<void()> again = [&] {
    if (++times < 3) table_.set("a", at(times + 1), again);
  };
  table_.set("a", at(1), again);
  fire(1);
  EXPECT_EQ(times, 1);
  EXPECT_EQ(table_.next_due(), at(2));
  fire(10);
  EXPECT_EQ(times, 3);
}

TEST_F(TimerTableTest, ListsByPrefixInTheOrderOfNames) {
  set("queue-poll:shop/b", 1);
  set("queue-poll:shop/a", 2);
  set("queue-poll:shop2/c", 3);
  set("run:1", 4);
  EXPECT_THAT(names("queue-poll:shop/"), ElementsAre("queue-poll:shop/a", "queue-poll:shop/b"));
  EXPECT_THAT(names("queue-poll:"),
              ElementsAre("queue-poll:shop/a", "queue-poll:shop/b", "queue-poll:shop2/c"));
  EXPECT_EQ(names("").size(), 4U);
  EXPECT_THAT(names("x"), IsEmpty());
  EXPECT_EQ(table_.list("run:"), (std::vector<TimerTable::Entry>{{"run:1", at(4)}}));
}

TEST_F(TimerTableTest, ForgetsAll) {
  set("a", 1);
  set("b", 2);
  table_.clear();
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_THAT(fire(10), IsEmpty());
}

}  // namespace
}  // namespace reprise::worker
