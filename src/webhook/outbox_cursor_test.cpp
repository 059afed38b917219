#include "webhook/outbox_cursor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/fake_clock.h"
#include "webhook/delivery_plan.h"

namespace reprise::webhook {
namespace {

using namespace std::chrono_literals;
using Page = OutboxCursor::Page;

constexpr auto kFull = OutboxCursor::kPageLimit;

class Cursor : public testing::Test {
 protected:
  std::optional<OutboxCursor::Ask> next(bool hungry = false) {
    return cursor_.next(hungry, clock_.now());
  }
  bool arrived(std::optional<WebhookKey> last, std::size_t size) {
    return cursor_.arrived(last, size);
  }
  WebhookKey key(Duration ago, Seq seq) const {
    return {.died_at = clock_.now() - ago, .queue = 1, .seq = seq};
  }

  test::FakeClock clock_;
  OutboxCursor cursor_{5s};
};

TEST_F(Cursor, ReadsFromTheBeginningWhilePagesAreFull) {
  const auto first = next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->after, std::nullopt);
  EXPECT_FALSE(next()) << "one at a time";
  arrived(key(1h, 64), kFull);
  EXPECT_EQ(next()->after, key(1h, 64));
  arrived(key(1h, 70), 6);
  EXPECT_FALSE(next());
}

TEST_F(Cursor, LooksAgainWhenWokenAndEveryNowAndThen) {
  next();
  arrived(key(1h, 1), 1);
  EXPECT_EQ(cursor_.next_time(), clock_.now() + 5s);
  EXPECT_FALSE(next());
  cursor_.wake();
  EXPECT_EQ(next()->after, key(1h, 1));
  cursor_.wake();  // while a page is under way that may be older than the death
  arrived(std::nullopt, 0);
  EXPECT_TRUE(next());
  arrived(std::nullopt, 0);
  EXPECT_FALSE(next());
  clock_.advance(5s);
  EXPECT_TRUE(next());
}

TEST_F(Cursor, EachLookBeginsALittleBeforeTheOneBefore) {
  const Timestamp began = clock_.now();
  next();
  arrived(key(0s, 9), 1);
  cursor_.wake();
  EXPECT_EQ(next()->after, key(0s, 9)) << "an announced one is later, most likely";
  arrived(std::nullopt, 0);
  clock_.advance(5s);
  const WebhookKey earlier{.died_at = began - 5s};
  EXPECT_EQ(next()->after, earlier);
  cursor_.failed(clock_.now());
  clock_.advance(1s);
  EXPECT_EQ(next()->after, earlier) << "that one has not been looked at";
  arrived(key(6s, 5), kFull);
  EXPECT_EQ(next()->after, key(6s, 5));
  arrived(key(6s, 9), 4);
  clock_.advance(5s);
  EXPECT_EQ(next()->after, key(11s, 9));
}

TEST_F(Cursor, APassRunsWhileSomebodyIsHungry) {
  next();
  arrived(key(1h, 200), 10);
  EXPECT_FALSE(next(false));
  const auto first = next(true);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->page, Page::first_pass);
  EXPECT_EQ(first->after, std::nullopt);
  EXPECT_FALSE(arrived(key(1h, 64), kFull));
  EXPECT_FALSE(next(false)) << "it waits";
  const auto second = next(true);
  EXPECT_EQ(second->page, Page::pass);
  EXPECT_EQ(second->after, key(1h, 64));
  EXPECT_TRUE(arrived(key(1h, 200), 10));
  EXPECT_EQ(next(true)->page, Page::first_pass) << "and the next one begins anew";
}

TEST_F(Cursor, PassAndEndTakeTurns) {
  next();
  arrived(key(1h, 200), kFull);
  EXPECT_EQ(next(true)->page, Page::first_pass);
  arrived(key(1h, 64), kFull);
  EXPECT_EQ(next(true)->page, Page::end);
  arrived(key(1h, 300), kFull);
  EXPECT_EQ(next(true)->page, Page::pass);
}

TEST_F(Cursor, WhatCannotBeReadIsAskedForAgainLater) {
  next();
  cursor_.failed(clock_.now());
  EXPECT_FALSE(next());
  EXPECT_EQ(cursor_.next_time(), clock_.now() + 1s);
  clock_.advance(1s);
  EXPECT_EQ(next()->after, std::nullopt);
}

// Plan and cursor together over an outbox in memory, on a fake clock.
class Delivery {
 public:
  void die(Seq seq, const std::string& url) {
    outbox_.emplace(WebhookKey{.died_at = clock_.now(), .queue = 1, .seq = seq}, url);
    cursor_.wake();
  }
  void set_down(const std::string& url, bool down) {
    down ? void(down_.insert(url)) : void(down_.erase(url));
  }
  // One step of everything, then the time to the next one.
  void step() {
    read();
    std::vector<DeliveryPlan::Delivery> under_way;
    while (auto delivery = plan_.take_due(clock_.now())) under_way.push_back(*delivery);
    clock_.advance(10ms);
    for (const auto& delivery : under_way) answer(delivery);
    most_held_ = std::max(most_held_, plan_.held());
  }
  std::size_t pending(const std::string& url) const {
    return static_cast<std::size_t>(
        std::ranges::count(outbox_, url, [](const auto& death) { return death.second; }));
  }

  test::FakeClock clock_;
  std::size_t read_ = 0;
  std::size_t most_held_ = 0;
  std::set<WebhookKey> tried_;  // in vain

 private:
  void read() {
    const auto ask = cursor_.next(plan_.hungry(), clock_.now());
    if (!ask) return;
    if (ask->page == Page::first_pass) plan_.begin_pass();
    const auto found =
        ask->page == Page::end ? DeliveryPlan::Found::at_the_end : DeliveryPlan::Found::on_a_pass;
    auto at = ask->after ? outbox_.upper_bound(*ask->after) : outbox_.begin();
    std::optional<WebhookKey> last;
    std::size_t size = 0;
    for (; at != outbox_.end() && size < kFull; ++at, ++size) {
      plan_.offer(at->first, at->second, found, clock_.now());
      last = at->first;
    }
    read_ += size;
    if (cursor_.arrived(last, size)) plan_.end_pass();
  }
  void answer(const DeliveryPlan::Delivery& delivery) {
    if (down_.contains(delivery.url)) {
      tried_.insert(delivery.key);
      plan_.failed(delivery.key, clock_.now());
    } else {
      plan_.delivered(delivery.key);
      outbox_.erase(delivery.key);
    }
  }

  std::map<WebhookKey, std::string> outbox_;
  std::set<std::string> down_;
  DeliveryPlan plan_{RetrySchedule{}};
  OutboxCursor cursor_{5s};
};

TEST(WebhookDelivery, AnAddressThatIsDownHoldsUpNobodyAndCostsLittle) {
  Delivery delivery;
  delivery.set_down("http://down", true);
  for (Seq seq = 1; seq <= 20'000; ++seq) {
    delivery.die(seq, seq % 2 == 0 ? "http://down" : "http://up");
  }
  for (int i = 0; i < 3500; ++i) delivery.step();
  EXPECT_EQ(delivery.pending("http://up"), 0U);
  EXPECT_EQ(delivery.pending("http://down"), 10'000U);
  EXPECT_LE(delivery.most_held_, 2 * DeliveryPlan::kHeldPerAddress);

  // Nothing is read of a backlog that nobody can take.
  const std::size_t read = delivery.read_;
  delivery.die(30'000, "http://up");
  for (int i = 0; i < 100; ++i) delivery.step();
  EXPECT_EQ(delivery.pending("http://up"), 0U);
  EXPECT_LE(delivery.read_ - read, 2U);
}

TEST(WebhookDelivery, ABacklogIsToldOnceItsAddressIsUpAgainAndReadAboutOnce) {
  Delivery delivery;
  delivery.set_down("http://a", true);
  for (Seq seq = 1; seq <= 10'000; ++seq) delivery.die(seq, "http://a");
  for (int i = 0; i < 1000; ++i) delivery.step();
  delivery.set_down("http://a", false);
  const std::size_t read = delivery.read_;
  for (int i = 0; i < 60'000 && delivery.pending("http://a") > 0; ++i) delivery.step();
  EXPECT_EQ(delivery.pending("http://a"), 0U);
  EXPECT_LE(delivery.read_ - read, 25'000U);
}

TEST(WebhookDelivery, ThoseThatAreRefusedDoNotKeepTheOthersBackForDays) {
  Delivery delivery;
  delivery.set_down("http://a", true);
  for (Seq seq = 1; seq <= 1000; ++seq) delivery.die(seq, "http://a");
  // Far from all are held at a time, and yet each is tried within hours.
  for (int minute = 0; minute < 120; ++minute) {
    for (int i = 0; i < 300; ++i) delivery.step();
    delivery.clock_.advance(57s);
  }
  EXPECT_EQ(delivery.tried_.size(), 1000U);
  EXPECT_LE(delivery.most_held_, DeliveryPlan::kHeldPerAddress);
}

TEST(WebhookDelivery, InTheEndEverythingIsTold) {
  SeededRandom random(3);
  Delivery delivery;
  Seq seq = 0;
  const auto url = [](std::uint64_t n) { return "http://" + std::to_string(n); };
  for (int i = 0; i < 20'000; ++i) {
    for (std::uint64_t n = random.below(4); n > 0; --n) delivery.die(++seq, url(random.below(30)));
    if (random.below(100) == 0) delivery.set_down(url(random.below(30)), random.below(2) == 0);
    delivery.step();
  }
  for (std::uint64_t n = 0; n < 30; ++n) delivery.set_down(url(n), false);
  for (int i = 0; i < 20'000; ++i) delivery.step();
  delivery.clock_.advance(10min);
  for (int i = 0; i < 20'000; ++i) delivery.step();
  for (std::uint64_t n = 0; n < 30; ++n) EXPECT_EQ(delivery.pending(url(n)), 0U) << n;
}

}  // namespace
}  // namespace reprise::webhook
