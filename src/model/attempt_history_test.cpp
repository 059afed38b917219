#include "model/attempt_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const Attempt kAttempt{.number = 3,
                       .generation = 2,
                       .started_at = Timestamp{5s},
                       .ended_at = Timestamp{7s},
                       .outcome = AttemptOutcome::lease_expired,
                       .worker = "host:17",
                       .error = std::string(300, 'e'),
                       .error_type = "Timeout"};

AttemptHistory of_numbers(std::uint32_t attempts) {
  AttemptHistory history;
  for (std::uint32_t number = 1; number <= attempts; ++number) {
    history.add({.number = number, .error = "error " + std::to_string(number)});
  }
  return history;
}

std::vector<std::uint32_t> numbers_after(std::uint32_t attempts) {
  std::vector<std::uint32_t> numbers;
  for (const Attempt& attempt : of_numbers(attempts)) {
    EXPECT_EQ(attempt.error, "error " + std::to_string(attempt.number));
    numbers.push_back(attempt.number);
  }
  return numbers;
}

TEST(AttemptHistory, KeepsAllOfTen) {
  EXPECT_THAT(numbers_after(0), ElementsAre());
  EXPECT_THAT(numbers_after(10), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST(AttemptHistory, KeepsTheFirstAndTheLastNineOfMore) {
  EXPECT_THAT(numbers_after(11), ElementsAre(1, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(numbers_after(1000), ElementsAre(1, 992, 993, 994, 995, 996, 997, 998, 999, 1000));
}

TEST(AttemptHistory, AnAttemptComesBackAsItWas) {
  const AttemptHistory history{{.number = 1}, kAttempt, {.number = 4}};
  EXPECT_EQ(history.size(), 3U);
  EXPECT_EQ(history[1], kAttempt);
  EXPECT_EQ(history.at(0), Attempt{.number = 1});
  EXPECT_EQ(history.back(), Attempt{.number = 4});
}

TEST(AttemptHistory, TwoAreEqualWhenTheirAttemptsAre) {
  Attempt other = kAttempt;
  EXPECT_EQ(AttemptHistory{other}, AttemptHistory{kAttempt});
  other.error_type = "timeout";
  EXPECT_NE(AttemptHistory{other}, AttemptHistory{kAttempt});
  EXPECT_NE(AttemptHistory(), AttemptHistory{Attempt{}});
}

TEST(AttemptHistory, IsReadFromWhereOthersFollow) {
  const AttemptHistory written{kAttempt, {.number = 4}};
  const std::string bytes = std::string(written.encoded()) + "rest";
  ByteReader in(bytes);
  const auto read = AttemptHistory::read(in, 2);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, written);
  EXPECT_EQ(in.rest(), "rest");
}

TEST(AttemptHistory, IsNotReadWhenItIsCutShort) {
  const AttemptHistory written{kAttempt, kAttempt};
  for (std::size_t size = 0; size < written.encoded().size(); ++size) {
    ByteReader in(written.encoded().substr(0, size));
    EXPECT_FALSE(AttemptHistory::read(in, 2)) << size;
  }
}

TEST(AttemptHistory, IsNotReadWithNumbersOutOfRange) {
  std::string outcome(AttemptHistory{Attempt{.number = 1}}.encoded());
  outcome[18] = 6;
  ByteReader in(outcome);
  EXPECT_FALSE(AttemptHistory::read(in, 1)) << "there is no such outcome";

  std::string number("\xff\xff\xff\xff\xff\x01", 6);
  number += AttemptHistory{Attempt{}}.encoded().substr(1);
  ByteReader large(number);
  EXPECT_FALSE(AttemptHistory::read(large, 1)) << "33 bits and more";
}

}  // namespace
}  // namespace reprise
