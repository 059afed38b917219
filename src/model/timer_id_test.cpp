#include "model/timer_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/random.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using Kind = TimerId::Kind;

constexpr std::string_view kFirst = "abcXYZ0189";
constexpr std::string_view kRest = "abcXYZ0189._-";

std::string random_name(SeededRandom& random) {
  std::string name(1, kFirst[random.below(kFirst.size())]);
  const std::size_t more = random.below(200);
  while (name.size() <= more) name += kRest[random.below(kRest.size())];
  return name;
}

TimerId random_timer(SeededRandom& random) {
  TimerId id{.kind = random.below(2) == 0 ? Kind::queue_poll : Kind::queue_retry,
             .ns = random_name(random),
             .name = random_name(random)};
  if (id.kind == Kind::queue_retry) id.job = std::max<Seq>(random.next_u64(), 1);
  return id;
}

TEST(TimerId, IsTheTextOfTheDocumentation) {
  EXPECT_EQ((TimerId{Kind::queue_poll, "shop", "fixer"}).to_text(), "queue-poll:shop/fixer");
  const Seq job = *decode_job_id("7ZK3M9QAX2B4C");
  EXPECT_EQ((TimerId{Kind::queue_retry, "shop", "orders", job}).to_text(),
            "queue-retry:shop/orders:7ZK3M9QAX2B4C");
}

TEST(TimerId, ReadsBackWhateverItWrote) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(2000); ++seed) {
    SeededRandom random(seed);
    const TimerId id = random_timer(random);
    const auto read = TimerId::parse(id.to_text());
    ASSERT_TRUE(read) << id.to_text();
    EXPECT_EQ(*read, id) << id.to_text();
  }
}

// What is read at all has one spelling: a text with any change in it means something else, or
// nothing.
TEST(TimerId, NoOtherTextMeansTheSame) {
  constexpr std::string_view kBytes(":/ aAoO0iIlL1-._\t\n\0\xff", 20);
  for (std::uint64_t seed = 1; seed <= test::seed_count(5000); ++seed) {
    SeededRandom random(seed);
    std::string text = random_timer(random).to_text();
    const std::size_t at = random.below(text.size() + 1);
    switch (random.below(3)) {
      case 0:
        text.insert(at, 1, kBytes[random.below(kBytes.size())]);
        break;
      case 1:
        text.erase(at, 1 + random.below(3));
        break;
      default:
        if (at < text.size()) text[at] = kBytes[random.below(kBytes.size())];
    }
    const auto read = TimerId::parse(text);
    if (read) {
      EXPECT_EQ(read->to_text(), text);
    }
  }
}

TEST(TimerId, RefusesWhatIsNoTimer) {
  for (const std::string& text : {std::string(),
                                  std::string("queue-poll"),
                                  std::string("queue-poll:"),
                                  std::string("queue-poll:shop"),
                                  std::string("queue-poll:/fixer"),
                                  std::string("queue-poll:shop/"),
                                  std::string("queue-poll:shop/a/b"),
                                  std::string("queue-poll:shop/fixer:7ZK3M9QAX2B4C"),
                                  std::string("Queue-poll:shop/fixer"),
                                  std::string(" queue-poll:shop/fixer"),
                                  std::string("queue-poll:shop/fixer "),
                                  std::string("queue-poll:sh op/fixer"),
                                  std::string("queue-poll:shop/.fixer"),
                                  std::string("queue-poll:shop/") + std::string(201, 'a'),
                                  std::string("queue-retry:shop/orders"),
                                  std::string("queue-retry:shop/orders:"),
                                  std::string("queue-retry:shop/orders:7ZK3"),
                                  std::string("queue-retry:shop/orders:7zk3m9qax2b4c"),
                                  std::string("queue-retry:shop/orders:7ZK3M9QAX2B4O"),
                                  std::string("queue-retry:shop/orders:ZZZZZZZZZZZZZ"),
                                  std::string("queue-retry:shop:7ZK3M9QAX2B4C"),
                                  std::string("queue-retry:shop/orders:") + encode_job_id(0),
                                  std::string("queue-poll:shop/fixer\0", 22)}) {
    const auto read = TimerId::parse(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::invalid_field) << text;
  }
}

}  // namespace
}  // namespace reprise
