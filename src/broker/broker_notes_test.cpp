// Notes through the broker with its real threads: durable, all or none, and seen by who asks later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "support/gated_storage.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Notes = std::vector<Note>;

class BrokerNotes : public ::testing::Test {
 protected:
  BrokerNotes() { open(); }
  ~BrokerNotes() override { storage.let_go(); }

  void open() {
    broker.reset();
    broker = *Broker::open(storage, clock, random, options);
  }
  std::future<Result<std::size_t>> start_change(std::vector<NoteChange> changes) {
    auto promise = std::make_shared<std::promise<Result<std::size_t>>>();
    broker->change_notes(std::move(changes),
                         [promise](Result<std::size_t> done) { promise->set_value(done); });
    return promise->get_future();
  }
  Result<std::size_t> change(std::vector<NoteChange> changes) {
    return start_change(std::move(changes)).get();
  }
  std::future<Result<Notes>> start_list(std::string prefix) {
    auto promise = std::make_shared<std::promise<Result<Notes>>>();
    broker->list_notes(std::move(prefix),
                       [promise](Result<Notes> notes) { promise->set_value(std::move(notes)); });
    return promise->get_future();
  }
  Notes list(std::string prefix = "") { return start_list(std::move(prefix)).get().value(); }

  test::GatedStorage storage;
  SteadyWallClock clock;
  SeededRandom random{7};
  BrokerOptions options;
  std::unique_ptr<Broker> broker;
};

TEST_F(BrokerNotes, AreListedByPrefixInTheOrderOfTheirKeys) {
  EXPECT_THAT(list(), IsEmpty());
  EXPECT_EQ(*change({{"worker/shop/b", "2"}, {"project/shop", "p"}, {"worker/shop/a", "1"}}), 3U);
  EXPECT_EQ(*change({{"worker/shop2/a", "3"}}), 1U);
  EXPECT_THAT(list("worker/shop/"),
              ElementsAre(Note{"worker/shop/a", "1"}, Note{"worker/shop/b", "2"}));
  EXPECT_THAT(list("worker/shop"),
              ElementsAre(Note{"worker/shop/a", "1"}, Note{"worker/shop/b", "2"},
                          Note{"worker/shop2/a", "3"}));
  EXPECT_EQ(list().size(), 4U);
  EXPECT_THAT(list("nobody/"), IsEmpty());
}

TEST_F(BrokerNotes, AreReplacedAndErased) {
  ASSERT_TRUE(change({{"a", "1"}, {"b", "1"}}));
  ASSERT_TRUE(change({{"a", "2"}, {"b", std::nullopt}, {"never there", std::nullopt}}));
  EXPECT_THAT(list(), ElementsAre(Note{"a", "2"}));
}

TEST_F(BrokerNotes, OfOneKeyTheLastChangeCounts) {
  ASSERT_TRUE(
      change({{"a", "1"}, {"a", std::nullopt}, {"a", "2"}, {"b", "1"}, {"b", std::nullopt}}));
  EXPECT_THAT(list(), ElementsAre(Note{"a", "2"}));
}

TEST_F(BrokerNotes, MayHoldAnyBytes) {
  const Note odd{std::string("k\0\xFF", 3), std::string("\0v\xFF", 3)};
  ASSERT_TRUE(change({{odd.key, odd.value}, {"empty", ""}}));
  EXPECT_THAT(list(), ElementsAre(Note{"empty", ""}, odd));
}

TEST_F(BrokerNotes, SurviveTheNextStart) {
  ASSERT_TRUE(change({{"a", "1"}, {"b", "2"}}));
  ASSERT_TRUE(change({{"a", std::nullopt}}));
  open();
  EXPECT_THAT(list(), ElementsAre(Note{"b", "2"}));
}

TEST_F(BrokerNotes, NoChangeIsAChangeOfNone) {
  EXPECT_EQ(*change({}), 0U);
  EXPECT_THAT(list(), IsEmpty());
}

TEST_F(BrokerNotes, OneThatIsRefusedKeepsAllOthersOut) {
  const auto refused = [&](NoteChange bad, Errc code, const std::string& words) {
    const auto done = change({{"good", "1"}, std::move(bad), {"good too", "1"}});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, code);
    EXPECT_THAT(done.error().detail, HasSubstr(words));
  };
  refused({"", "1"}, Errc::key_too_long, "1 to 1024 bytes, not 0");
  refused({std::string(1025, 'k'), "1"}, Errc::key_too_long, "not 1025");
  refused({std::string(1025, 'k'), std::nullopt}, Errc::key_too_long, "not 1025");
  refused({"large", std::string((2 << 20) + 1, 'v')}, Errc::value_too_large, "note large has");
  EXPECT_THAT(list(), IsEmpty());
}

TEST_F(BrokerNotes, TheLargestOnesAreKept) {
  const Note largest{std::string(1024, 'k'), std::string(2 << 20, 'v')};
  ASSERT_TRUE(change({{largest.key, largest.value}}));
  EXPECT_TRUE(list() == Notes{largest});
}

TEST_F(BrokerNotes, ChangesAreOneCommitAndAreToldAfterIt) {
  const int before = storage.commits();
  storage.hold();
  auto changed = start_change({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  storage.wait_for_commit_at_gate();
  auto listed = start_list("");
  EXPECT_EQ(changed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  EXPECT_EQ(listed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout)
      << "who asks after a change sees it";
  storage.let_go();
  EXPECT_EQ(*changed.get(), 3U);
  EXPECT_EQ(listed.get()->size(), 3U);
  EXPECT_EQ(storage.commits() - before, 1);
}

TEST_F(BrokerNotes, WhatWasAcceptedIsThereAfterAStop) {
  for (int i = 0; i < 100; ++i) {
    broker->change_notes({{"note/" + std::to_string(i), "x"}}, [](const Result<std::size_t>&) {});
  }
  broker->stop();
  open();
  EXPECT_EQ(list("note/").size(), 100U);
}

}  // namespace
}  // namespace reprise
