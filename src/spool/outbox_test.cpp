#include "spool/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/ulid.h"
#include "spool/event.h"
#include "support/crashing.h"
#include "support/files.h"
#include "support/spool_crash.h"
#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

using test::names_in;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() : files_(std::move(*SpoolFiles::create(directory_.path()))), outbox_(files_) {}

  std::string queue() const { return directory_ / "queue"; }
  Quota quota() { return read_quota(files_)->value_or(Quota{}); }
  void limit(std::optional<std::uint64_t> events, std::optional<std::uint64_t> bytes,
             WhenFull when_full = WhenFull::refuse) {
    QuotaChange change;
    if (events) change.max_events = events;
    if (bytes) change.max_bytes = bytes;
    change.when_full = when_full;
    const auto changed = outbox_.change_quota(change);
    ASSERT_TRUE(changed) << changed.error().detail;
  }
  Result<Added> add(const std::vector<std::string>& names, std::size_t bytes = 10) {
    std::vector<NewFile> events;
    for (const auto& name : names) events.push_back({name, std::string(bytes, 'x')});
    return outbox_.add(events);
  }

  test::TempDirectory directory_;
  SpoolFiles files_;
  Outbox outbox_;
};

TEST_F(OutboxTest, WithoutAQuotaEverythingIsStored) {
  EXPECT_FALSE(*read_quota(files_));
  const auto added = add({"a.json", "b.json"});
  ASSERT_TRUE(added);
  EXPECT_THAT(added->already_there, IsEmpty());
  EXPECT_EQ(added->dropped, 0U);
  EXPECT_THAT(add({"b.json", "c.json"})->already_there, ElementsAre("b.json"));
  EXPECT_THAT(names_in(queue()), ElementsAre("a.json", "b.json", "c.json"));
  EXPECT_THAT(names_in(directory_.path()), ElementsAre("dead-letter", "queue"));
}

TEST_F(OutboxTest, AQuotaIsKeptInTheDirectory) {
  limit(5, 1000, WhenFull::drop_oldest);
  EXPECT_EQ(test::read_file(directory_ / "quota.json"),
            "{\"maxEvents\":5,\"maxBytes\":1000,\"whenFull\":\"drop-oldest\",\"dropped\":0}\n");
  EXPECT_EQ(quota().max_events, 5U);
  EXPECT_EQ(quota().max_bytes, 1000U);
  EXPECT_EQ(quota().when_full, WhenFull::drop_oldest);
  // What is not given stays.
  ASSERT_TRUE(outbox_.change_quota({.max_bytes = std::optional<std::uint64_t>()}));
  EXPECT_EQ(quota().max_events, 5U);
  EXPECT_FALSE(quota().max_bytes);
  EXPECT_EQ(quota().when_full, WhenFull::drop_oldest);
}

TEST_F(OutboxTest, WithTheLastLimitTheQuotaIsGone) {
  limit(1, {});
  ASSERT_TRUE(outbox_.change_quota({.max_events = std::optional<std::uint64_t>()}));
  EXPECT_FALSE(*read_quota(files_));
  EXPECT_THAT(names_in(directory_.path()), ElementsAre("dead-letter", "queue"));
  EXPECT_TRUE(outbox_.change_quota({.max_events = std::optional<std::uint64_t>()}));
  EXPECT_EQ(outbox_.change_quota({.when_full = WhenFull::drop_oldest}).error().code,
            Errc::invalid_field);
}

TEST_F(OutboxTest, AQuotaThatCannotBeUnderstoodIsToldWithTheFix) {
  for (const std::string text : {"", "{", "[]", R"({"maxEvents":-1})", R"({"maxEvents":"5"})",
                                 R"({"whenFull":"panic"})", R"({"maxEvent":5})"}) {
    test::write_file(directory_ / "quota.json", text);
    const auto read = read_quota(files_);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::corrupt);
    EXPECT_THAT(read.error().detail, HasSubstr("/quota.json"));
    EXPECT_THAT(read.error().detail, HasSubstr("delete it"));
    EXPECT_EQ(add({"a.json"}).error().code, Errc::corrupt);
  }
  EXPECT_THAT(names_in(queue()), IsEmpty());
}

TEST_F(OutboxTest, AFullSpoolStoresNothingOfAGroupThatDoesNotFit) {
  limit(3, {});
  ASSERT_TRUE(add({"a.json", "b.json"}));
  const auto refused = add({"c.json", "d.json"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::spool_full);
  EXPECT_THAT(refused.error().detail, HasSubstr("the quota is 3 events"));
  EXPECT_THAT(names_in(queue()), ElementsAre("a.json", "b.json"));
  EXPECT_TRUE(add({"c.json"}));
  EXPECT_EQ(add({"d.json"}).error().code, Errc::spool_full);
}

TEST_F(OutboxTest, BytesCountAsTheyAreInTheQueue) {
  limit({}, 100);
  ASSERT_TRUE(add({"a.json"}, 60));
  EXPECT_EQ(add({"b.json"}, 41).error().code, Errc::spool_full);
  EXPECT_TRUE(add({"b.json"}, 40));
  EXPECT_EQ(add({"c.json"}, 1).error().code, Errc::spool_full);
  // What is not in the queue does not count.
  test::write_file(directory_ / "dead-letter/d.json", std::string(1000, 'x'));
  std::filesystem::remove(directory_ / "queue/a.json");
  EXPECT_TRUE(add({"c.json"}, 60));
}

TEST_F(OutboxTest, WhatIsQueuedAlreadyNeedsNoRoom) {
  limit(2, {});
  ASSERT_TRUE(add({"a.json", "b.json"}));
  const auto again = add({"a.json", "b.json"});
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_THAT(again->already_there, ElementsAre("a.json", "b.json"));
  limit(3, {});
  EXPECT_THAT(add({"c.json", "c.json"})->already_there, ElementsAre("c.json"));
}

TEST_F(OutboxTest, ASmallerQuotaDeletesNothingByItself) {
  ASSERT_TRUE(add({"a.json", "b.json", "c.json"}));
  limit(1, {});
  EXPECT_EQ(add({"d.json"}).error().code, Errc::spool_full);
  EXPECT_EQ(names_in(queue()).size(), 3U);
}

TEST_F(OutboxTest, TheOldestMakeRoomAndAreCounted) {
  limit(3, {}, WhenFull::drop_oldest);
  ASSERT_TRUE(add({"a.json", "b.json", "c.json"}));
  EXPECT_EQ(quota().dropped, 0U);
  EXPECT_EQ(add({"d.json"})->dropped, 1U);
  EXPECT_THAT(names_in(queue()), ElementsAre("b.json", "c.json", "d.json"));
  EXPECT_EQ(add({"e.json", "f.json"})->dropped, 2U);
  EXPECT_THAT(names_in(queue()), ElementsAre("d.json", "e.json", "f.json"));
  EXPECT_EQ(quota().dropped, 3U);
  EXPECT_EQ(quota().max_events, 3U);
  // A change of the quota keeps the count.
  limit(2, {}, WhenFull::drop_oldest);
  EXPECT_EQ(quota().dropped, 3U);
}

TEST_F(OutboxTest, AsManyBytesAsNeededAreDropped) {
  limit({}, 100, WhenFull::drop_oldest);
  ASSERT_TRUE(add({"a.json", "b.json", "c.json"}, 30));
  EXPECT_EQ(add({"d.json"}, 50)->dropped, 2U);
  EXPECT_THAT(names_in(queue()), ElementsAre("c.json", "d.json"));
}

TEST_F(OutboxTest, AnEventBeyondTheQuotaAloneIsRefusedInAnyCase) {
  limit({}, 100, WhenFull::drop_oldest);
  ASSERT_TRUE(add({"a.json"}));
  const auto refused = add({"b.json"}, 101);
  EXPECT_EQ(refused.error().code, Errc::spool_full);
  EXPECT_THAT(refused.error().detail, HasSubstr("101 B is beyond the spool's quota of 100 B"));
  limit(0, {}, WhenFull::drop_oldest);
  EXPECT_EQ(add({"b.json"}).error().code, Errc::spool_full);
  EXPECT_THAT(names_in(queue()), ElementsAre("a.json"));
  EXPECT_EQ(quota().dropped, 0U);
}

TEST_F(OutboxTest, AGroupBeyondTheQuotaEndsAsIfAddedOneByOne) {
  limit(2, {}, WhenFull::drop_oldest);
  ASSERT_TRUE(add({"a.json"}));
  EXPECT_EQ(add({"b.json", "c.json", "d.json", "e.json"})->dropped, 3U);
  EXPECT_THAT(names_in(queue()), ElementsAre("d.json", "e.json"));
  EXPECT_EQ(quota().dropped, 3U);
}

// Several processes add at once; `group` events a time, until `each` are tried.
void add_in_processes(const std::string& directory, int processes, int each, int group) {
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    children.push_back(test::start_child([&] {
      auto files = std::move(*SpoolFiles::create(directory));
      Outbox outbox(files);
      SystemRandom random;
      UlidSource ids(random);
      for (int done = 0; done < each; done += group) {
        std::vector<NewFile> events;
        for (int i = 0; i < group; ++i) {
          events.push_back({event_file_name(encode_ulid(ids.next(Timestamp()))), "x"});
        }
        const auto added = outbox.add(events);
        if (!added && added.error().code != Errc::spool_full) return false;
        if (files.list(Folder::queue, Sizes::no)->files.size() > 50) return false;
      }
      return true;
    }));
  }
  for (const pid_t child : children) {
    EXPECT_EQ(test::wait_for_child(child), test::ChildEnd::succeeded);
  }
}

TEST_F(OutboxTest, ManyAddersTogetherNeverGoBeyondTheQuota) {
  limit(50, {});
  add_in_processes(directory_.path(), 4, 60, 3);
  const auto count = names_in(queue()).size();
  EXPECT_LE(count, 50U);
  EXPECT_GE(count, 48U);
}

TEST_F(OutboxTest, ManyAddersTogetherCountEachDropOnce) {
  limit(50, {}, WhenFull::drop_oldest);
  add_in_processes(directory_.path(), 4, 60, 3);
  EXPECT_EQ(names_in(queue()).size(), 50U);
  EXPECT_EQ(quota().dropped, 4U * 60 - 50);
}

TEST(CrashOfOutbox, AddingWithinAQuotaLeavesWholeEventsAndAQuota) {
  const auto event = [](char letter) {
    return NewFile{std::string(1, letter) + ".json", std::string(100, letter)};
  };
  test::crash_at_every_step(
      [&](const std::filesystem::path& spool) {
        auto files = std::move(*SpoolFiles::create(spool));
        Outbox outbox(files);
        ASSERT_TRUE(outbox.change_quota({.max_events = 2, .when_full = WhenFull::drop_oldest}));
        ASSERT_TRUE(outbox.add({event('a'), event('b')}));
      },
      [&](SpoolFiles& files) { return Outbox(files).add({event('c')}).has_value(); },
      [&](const SpoolFiles& files, test::ChildEnd end) {
        const auto listing = files.list(Folder::queue, Sizes::yes);
        ASSERT_TRUE(listing);
        EXPECT_LE(listing->files.size(), 2U);
        EXPECT_GE(listing->files.size(), end == test::ChildEnd::succeeded ? 2U : 1U);
        for (const FileEntry& file : listing->files) EXPECT_EQ(file.bytes, 100U);
        const auto quota = read_quota(files);
        ASSERT_TRUE(quota && *quota);
        EXPECT_EQ((*quota)->max_events, 2U);
        EXPECT_LE((*quota)->dropped, 1U);
      });
}

}  // namespace
}  // namespace reprise::spool
