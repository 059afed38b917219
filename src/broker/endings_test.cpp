#include "broker/endings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "storage/memory/memory_storage.h"
#include "storage/records.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using storage::EndingKey;
using storage::EndKind;

constexpr Timestamp kNoon = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1) + 12h;
constexpr QueueNumber kQueue = 7;

class EndingsTest : public testing::Test {
 protected:
  void add(const EndingKey& key, std::uint64_t fingerprint = 1) {
    storage::Batch batch;
    batch.put(storage::Keyspace::endings, ending_key(key), storage::encode_ending({fingerprint}));
    ASSERT_TRUE(storage_->commit(batch, storage::Durability::buffered));
  }
  std::vector<EndingKey> newest(const EndingKey& before, std::size_t most) {
    const auto snapshot = storage_->snapshot();
    const auto found = Endings(*snapshot, kQueue, EndKind::dead).newest(before, most);
    EXPECT_TRUE(found);
    std::vector<EndingKey> keys;
    for (const Ended& ended : *found) keys.push_back(ended.key);
    return keys;
  }

  std::unique_ptr<storage::Storage> storage_ = storage::make_memory_storage();
};

TEST_F(EndingsTest, OldestComeInOrderAndStayInTheirQueueAndKind) {
  add({kQueue, EndKind::dead, kNoon + 2s, 1}, 22);
  add({kQueue, EndKind::dead, kNoon + 1s, 9}, 11);
  add({kQueue, EndKind::completed, kNoon, 3});
  add({kQueue + 1, EndKind::dead, kNoon, 4});
  add({kQueue - 1, EndKind::completed, kNoon, 5});
  const auto snapshot = storage_->snapshot();
  const Endings dead(*snapshot, kQueue, EndKind::dead);
  const auto all = dead.oldest(dead.from(Timestamp{}), dead.end(), 10);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].key.seq, 9U);
  EXPECT_EQ((*all)[0].fingerprint, 11U);
  EXPECT_EQ((*all)[1].key.seq, 1U);
  // A bound in time leaves out what ended then.
  const auto early = dead.oldest(dead.from(Timestamp{}), dead.from(kNoon + 2s), 10);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->size(), 1U);
  const Endings completed(*snapshot, kQueue, EndKind::completed);
  const auto kept = completed.oldest(completed.from(Timestamp{}), completed.end(), 10);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->size(), 1U);
}

TEST_F(EndingsTest, NothingIsNewestOfNothing) {
  EXPECT_TRUE(newest({kQueue, EndKind::dead, kNoon, 0}, 5).empty());
}

TEST_F(EndingsTest, OneThatEndedAtTheEpochIsFound) {
  add({kQueue, EndKind::dead, Timestamp{}, 1});
  EXPECT_EQ(newest({kQueue, EndKind::dead, kNoon, 0}, 5).size(), 1U);
  EXPECT_EQ(newest({kQueue, EndKind::dead, kNever, 0}, 1).size(), 1U);
}

// Deaths far apart, in bursts and many in one microsecond: paged from the newest, each comes once.
TEST_F(EndingsTest, NewestPagesThroughEverythingBackwards) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    storage_ = storage::make_memory_storage();
    SeededRandom random(seed);
    std::vector<EndingKey> all;
    Timestamp at = kNoon;
    Seq seq = 0;
    for (std::uint64_t bursts = 1 + random.below(6); bursts > 0; --bursts) {
      at += Duration(1LL << random.below(42));
      for (std::uint64_t jobs = random.below(120); jobs > 0; --jobs) {
        if (random.below(3) == 0) at += Duration(random.below(1000));
        all.push_back({kQueue, EndKind::dead, at, ++seq});
      }
    }
    for (const EndingKey& key : all) add(key);
    std::ranges::sort(all, std::greater{});
    const std::size_t page_size = 1 + random.below(30);
    std::vector<EndingKey> seen;
    EndingKey before{kQueue, EndKind::dead, at + 1us, 0};
    while (true) {
      const auto page = newest(before, page_size);
      seen.insert(seen.end(), page.begin(), page.end());
      if (page.size() < page_size) break;
      before = page.back();
    }
    ASSERT_EQ(seen, all) << "seed " << seed << ", pages of " << page_size;
  }
}

}  // namespace
}  // namespace reprise
