// What every Storage must do, run on each kind of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/storage.h"
#include "support/live_attributes.h"
#include "support/storage_backend.h"

namespace reprise::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Pairs = std::vector<std::pair<std::string, std::string>>;

class StorageConformance : public testing::TestWithParam<test::StorageBackendKind> {
 protected:
  Storage& storage() { return backend_->storage(); }
  void reopen() { backend_->reopen(); }

  void commit(const Batch& batch, Durability durability = Durability::synced) {
    const auto status = storage().commit(batch, durability);
    ASSERT_TRUE(status) << status.error().detail;
  }
  void reclaim(Keyspace keyspace, std::string_view begin, std::string_view end) {
    const auto status = storage().reclaim(keyspace, begin, end);
    ASSERT_TRUE(status) << status.error().detail;
  }
  void put(Keyspace keyspace, std::string_view key, std::string_view value) {
    Batch batch;
    batch.put(keyspace, key, value);
    commit(batch);
  }
  std::optional<std::string> get(Keyspace keyspace, std::string_view key) {
    const auto result = storage().get(keyspace, key);
    EXPECT_TRUE(result) << result.error().detail;
    return *result;
  }
  Pairs scan(Keyspace keyspace, std::string_view begin = {}, std::string_view end = {}) {
    Pairs found;
    const auto status = storage().scan(keyspace, begin, end, [&](auto key, auto value) {
      found.emplace_back(key, value);
      return true;
    });
    EXPECT_TRUE(status) << status.error().detail;
    return found;
  }

 private:
  const std::unique_ptr<test::StorageBackend> backend_ = GetParam().make();
};

Pairs walk(Storage::Cursor& cursor) {
  Pairs found;
  for (; cursor.valid(); cursor.next()) found.emplace_back(cursor.key(), cursor.value());
  EXPECT_TRUE(cursor.status());
  return found;
}

TEST_P(StorageConformance, AnUnknownKeyIsAbsentNotAnError) {
  EXPECT_EQ(get(Keyspace::jobs, "nothing"), std::nullopt);
  EXPECT_THAT(scan(Keyspace::jobs), IsEmpty());
}

TEST_P(StorageConformance, PutIsReadBackAndOverwritten) {
  put(Keyspace::jobs, "a", "1");
  EXPECT_EQ(get(Keyspace::jobs, "a"), "1");
  put(Keyspace::jobs, "a", "2");
  EXPECT_EQ(get(Keyspace::jobs, "a"), "2");
}

TEST_P(StorageConformance, KeyspacesDoNotMix) {
  for (const Keyspace keyspace : kAllKeyspaces) put(keyspace, "key", keyspace_name(keyspace));
  for (const Keyspace keyspace : kAllKeyspaces) {
    EXPECT_EQ(get(keyspace, "key"), keyspace_name(keyspace));
  }
}

TEST_P(StorageConformance, EraseRemovesOneKeyAndIsHarmlessOnAbsentOnes) {
  put(Keyspace::jobs, "a", "1");
  put(Keyspace::jobs, "b", "2");
  Batch batch;
  batch.erase(Keyspace::jobs, "a");
  batch.erase(Keyspace::jobs, "never there");
  commit(batch);
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("b", "2")));
}

TEST_P(StorageConformance, EraseRangeRemovesFromBeginUpToEndOnly) {
  for (const auto* key : {"a", "b", "bb", "c", "d"}) put(Keyspace::jobs, key, "v");
  put(Keyspace::states, "b", "other keyspace");
  Batch batch;
  batch.erase_range(Keyspace::jobs, "b", "c");
  commit(batch);
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("a", "v"), Pair("c", "v"), Pair("d", "v")));
  EXPECT_EQ(get(Keyspace::jobs, "bb"), std::nullopt);
  EXPECT_EQ(get(Keyspace::states, "b"), "other keyspace");
}

TEST_P(StorageConformance, EraseRangeThatIsEmptyOrBackwardsRemovesNothing) {
  put(Keyspace::jobs, "b", "v");
  Batch batch;
  batch.erase_range(Keyspace::jobs, "b", "b");
  batch.erase_range(Keyspace::jobs, "c", "a");
  commit(batch);
  EXPECT_EQ(get(Keyspace::jobs, "b"), "v");
}

TEST_P(StorageConformance, LaterMutationsInABatchWin) {
  put(Keyspace::jobs, "erased", "old");
  Batch batch;
  batch.put(Keyspace::jobs, "twice", "first");
  batch.put(Keyspace::jobs, "twice", "second");
  batch.put(Keyspace::jobs, "erased", "new");
  batch.erase(Keyspace::jobs, "erased");
  batch.erase(Keyspace::jobs, "put");
  batch.put(Keyspace::jobs, "put", "after erase");
  batch.put(Keyspace::jobs, "range-a", "before the range is erased");
  batch.erase_range(Keyspace::jobs, "range", "rangf");
  batch.put(Keyspace::jobs, "range-b", "after");
  commit(batch);
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("put", "after erase"),
                                                Pair("range-b", "after"), Pair("twice", "second")));
}

TEST_P(StorageConformance, CommitsUnderWayTakeEffectInTheOrderInWhichTheyBegan) {
  put(Keyspace::jobs, "a", "before");
  Batch first;
  first.put(Keyspace::jobs, "a", "first");
  Batch second;
  second.erase(Keyspace::jobs, "a");
  second.put(Keyspace::jobs, "b", "second");
  const auto earlier = storage().begin_commit(first, Durability::synced);
  ASSERT_TRUE(earlier);
  // On a thread of its own: it may have to wait for the one before.
  auto later = std::async(std::launch::async, [&] {
    auto begun = storage().begin_commit(second, Durability::synced);
    if (begun) (*begun)->write();
    return begun;
  });
  (*earlier)->write();
  EXPECT_EQ(get(Keyspace::jobs, "a"), "before");
  ASSERT_TRUE((*earlier)->finish());
  EXPECT_EQ(get(Keyspace::jobs, "a"), "first");
  EXPECT_EQ(get(Keyspace::jobs, "b"), std::nullopt);
  const auto begun = later.get();
  ASSERT_TRUE(begun && (*begun)->finish());
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("b", "second")));
  put(Keyspace::jobs, "c", "after");
  reopen();
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("b", "second"), Pair("c", "after")));
}

// Over several segments, with some that are not synced.
TEST_P(StorageConformance, CommitsOfManyThreadsSideBySideAllTakeEffect) {
  constexpr int kCommits = 300;
  const auto key = [](int number) { return std::to_string(number); };
  std::mutex beginning;
  int begun = 0;
  std::mutex finishing;
  std::condition_variable finished;
  int ended = 0;
  const auto run = [&] {
    while (true) {
      std::unique_lock begin_lock(beginning);
      const int number = begun++;
      if (number >= kCommits) return;
      Batch batch;
      batch.put(Keyspace::jobs, key(number), std::string(number * 40, 'x'));
      if (number > 0) batch.erase(Keyspace::jobs, key(number - 1));
      const auto commit = storage().begin_commit(
          batch, number % 7 == 0 ? Durability::buffered : Durability::synced);
      begin_lock.unlock();
      if (commit) (*commit)->write();
      std::unique_lock finish_lock(finishing);
      finished.wait(finish_lock, [&] { return ended == number; });
      EXPECT_TRUE(commit && (*commit)->finish());
      ++ended;
      finished.notify_all();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
  const Pairs last = {{key(kCommits - 1), std::string((kCommits - 1) * 40, 'x')}};
  EXPECT_EQ(scan(Keyspace::jobs), last);
  put(Keyspace::states, "k", "what went before is synced, too");
  reopen();
  EXPECT_EQ(scan(Keyspace::jobs), last);
}

TEST_P(StorageConformance, AnEmptyBatchCommits) {
  commit(Batch());
  commit(Batch(), Durability::buffered);
  EXPECT_TRUE(storage().sync());
}

TEST_P(StorageConformance, ABatchCanBeClearedAndUsedAgain) {
  Batch batch;
  batch.put(Keyspace::jobs, "a", "1");
  commit(batch);
  batch.clear();
  EXPECT_TRUE(batch.empty());
  batch.put(Keyspace::jobs, "b", "2");
  commit(batch);
  commit(batch);  // the same once more changes nothing
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("a", "1"), Pair("b", "2")));
}

TEST_P(StorageConformance, ScansAreInByteOrder) {
  const std::string high("\xff\x01", 2);
  const std::string zero("\0", 1);
  const std::string zeros("\0\0", 2);
  for (const auto& key :
       {high, std::string("b"), std::string("a"), zeros, std::string("aa"), zero}) {
    put(Keyspace::keys, key, "v");
  }
  EXPECT_THAT(scan(Keyspace::keys), ElementsAre(Pair(zero, "v"), Pair(zeros, "v"), Pair("a", "v"),
                                                Pair("aa", "v"), Pair("b", "v"), Pair(high, "v")));
}

TEST_P(StorageConformance, ScanBoundsAreBeginInclusiveEndExclusive) {
  for (const auto* key : {"a", "b", "c", "d"}) put(Keyspace::jobs, key, "v");
  EXPECT_THAT(scan(Keyspace::jobs, "b", "d"), ElementsAre(Pair("b", "v"), Pair("c", "v")));
  EXPECT_THAT(scan(Keyspace::jobs, "bb", "cc"), ElementsAre(Pair("c", "v")));
  EXPECT_THAT(scan(Keyspace::jobs, "c"), ElementsAre(Pair("c", "v"), Pair("d", "v")));
  EXPECT_THAT(scan(Keyspace::jobs, "c", "c"), IsEmpty());
  EXPECT_THAT(scan(Keyspace::jobs, "d", "b"), IsEmpty());
  EXPECT_THAT(scan(Keyspace::jobs, "e"), IsEmpty());
}

TEST_P(StorageConformance, ScanStopsWhenTheVisitorSaysSo) {
  for (const auto* key : {"a", "b", "c"}) put(Keyspace::jobs, key, "v");
  std::vector<std::string> seen;
  ASSERT_TRUE(storage().scan(Keyspace::jobs, {}, {}, [&](auto key, auto) {
    seen.emplace_back(key);
    return seen.size() < 2;
  }));
  EXPECT_THAT(seen, ElementsAre("a", "b"));
}

TEST_P(StorageConformance, AVisitorMayReadAndCommitAndTheScanDoesNotSeeIt) {
  for (const auto* key : {"a", "b", "c"}) put(Keyspace::jobs, key, "old");
  Pairs seen;
  ASSERT_TRUE(storage().scan(Keyspace::jobs, {}, {}, [&](auto key, auto value) {
    seen.emplace_back(key, value);
    Batch batch;
    batch.put(Keyspace::jobs, "b", "new");
    batch.erase(Keyspace::jobs, "c");
    batch.put(Keyspace::jobs, "d", "new");
    commit(batch);
    EXPECT_EQ(get(Keyspace::jobs, "b"), "new");
    return true;
  }));
  EXPECT_THAT(seen, ElementsAre(Pair("a", "old"), Pair("b", "old"), Pair("c", "old")));
}

TEST_P(StorageConformance, EmptyAndBinaryAndLargeValuesComeBackExactly) {
  const std::string binary("\0\x01\xff\n\0", 5);
  const std::string large(3U << 20, 'x');
  put(Keyspace::jobs, binary, "");
  put(Keyspace::jobs, "binary", binary);
  put(Keyspace::jobs, "large", large);
  reopen();
  EXPECT_EQ(get(Keyspace::jobs, binary), "");
  EXPECT_EQ(get(Keyspace::jobs, "binary"), binary);
  EXPECT_EQ(get(Keyspace::jobs, "large"), large);
}

TEST_P(StorageConformance, ASnapshotStaysAsItWas) {
  put(Keyspace::jobs, "a", "1");
  put(Keyspace::jobs, "b", "1");
  const auto before = storage().snapshot();
  Batch batch;
  batch.put(Keyspace::jobs, "a", "2");
  batch.erase_range(Keyspace::jobs, "b", "c");
  batch.put(Keyspace::states, "a", "2");
  commit(batch);

  EXPECT_EQ(*before->get(Keyspace::jobs, "a"), "1");
  EXPECT_EQ(*before->get(Keyspace::states, "a"), std::nullopt);
  EXPECT_THAT(walk(*before->cursor(Keyspace::jobs, {}, {})),
              ElementsAre(Pair("a", "1"), Pair("b", "1")));
  EXPECT_THAT(walk(*before->cursor(Keyspace::states, {}, {})), IsEmpty());
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("a", "2")));
}

TEST_P(StorageConformance, CursorsKeepTheirBounds) {
  for (const auto* key : {"a", "b", "c", "d"}) put(Keyspace::jobs, key, "v");
  const auto view = storage().snapshot();
  EXPECT_THAT(walk(*view->cursor(Keyspace::jobs, "b", "d")),
              ElementsAre(Pair("b", "v"), Pair("c", "v")));
  EXPECT_THAT(walk(*view->cursor(Keyspace::jobs, "c", "")),
              ElementsAre(Pair("c", "v"), Pair("d", "v")));
  EXPECT_THAT(walk(*view->cursor(Keyspace::jobs, "d", "a")), IsEmpty());
}

// How a restart reads: jobs and their states side by side.
TEST_P(StorageConformance, TwoCursorsOfOneSnapshotCanBeMerged) {
  for (const auto* key : {"1", "2", "3", "4"}) put(Keyspace::jobs, key, "job");
  for (const auto* key : {"2", "4"}) put(Keyspace::states, key, "failed");
  const auto view = storage().snapshot();
  const auto jobs = view->cursor(Keyspace::jobs, {}, {});
  const auto states = view->cursor(Keyspace::states, {}, {});
  Pairs merged;
  for (; jobs->valid(); jobs->next()) {
    const bool has_state = states->valid() && states->key() == jobs->key();
    merged.emplace_back(jobs->key(), has_state ? states->value() : "pending");
    if (has_state) states->next();
  }
  EXPECT_FALSE(states->valid());
  EXPECT_THAT(merged, ElementsAre(Pair("1", "pending"), Pair("2", "failed"), Pair("3", "pending"),
                                  Pair("4", "failed")));
}

TEST_P(StorageConformance, SyncedDataIsThereAfterReopening) {
  put(Keyspace::jobs, "synced by commit", "1");
  Batch batch;
  batch.put(Keyspace::states, "synced later", "2");
  commit(batch, Durability::buffered);
  ASSERT_TRUE(storage().sync());
  reopen();
  EXPECT_EQ(get(Keyspace::jobs, "synced by commit"), "1");
  EXPECT_EQ(get(Keyspace::states, "synced later"), "2");
}

TEST_P(StorageConformance, ASyncedCommitMakesTheBufferedOnesBeforeItDurable) {
  Batch batch;
  batch.put(Keyspace::jobs, "buffered", "1");
  commit(batch, Durability::buffered);
  put(Keyspace::jobs, "synced", "2");
  reopen();
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("buffered", "1"), Pair("synced", "2")));
}

TEST_P(StorageConformance, ReclaimTakesNothingThatIsAlive) {
  for (const auto* key : {"a", "b", "c", "d"}) put(Keyspace::jobs, key, "v");
  put(Keyspace::states, "b", "v");
  Batch batch;
  batch.erase_range(Keyspace::jobs, "b", "d");
  commit(batch);
  reclaim(Keyspace::jobs, "b", "d");
  // Of a range that was not erased there is nothing to reclaim.
  reclaim(Keyspace::states, "a", "z");
  reclaim(Keyspace::states, "", "");
  reopen();
  EXPECT_THAT(scan(Keyspace::jobs), ElementsAre(Pair("a", "v"), Pair("d", "v")));
  EXPECT_EQ(get(Keyspace::states, "b"), "v");
}

TEST_P(StorageConformance, ReclaimLeavesAnOlderSnapshotWhole) {
  for (const auto* key : {"a", "b", "c"}) put(Keyspace::jobs, key, "v");
  reclaim(Keyspace::dead, "a", "b");  // RocksDB: now they are in a file
  const auto before = storage().snapshot();
  Batch batch;
  batch.erase_range(Keyspace::jobs, "a", "z");
  commit(batch);
  reclaim(Keyspace::jobs, "a", "z");
  EXPECT_EQ(walk(*before->cursor(Keyspace::jobs, {}, {})).size(), 3U);
  EXPECT_THAT(scan(Keyspace::jobs), IsEmpty());
}

// Every commit writes one value everywhere; a reader that ever sees two has seen half a batch.
TEST_P(StorageConformance, ReadersBesideAWriterSeeWholeBatchesOnly) {
  constexpr int kCommits = 300;
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e"};
  const auto write = [&](int round) {
    Batch batch;
    for (const auto& key : keys) batch.put(Keyspace::jobs, key, std::to_string(round));
    batch.put(Keyspace::states, "a", std::to_string(round));
    EXPECT_TRUE(storage().commit(batch, Durability::buffered));
  };
  write(0);
  std::atomic<bool> done = false;
  const auto read_scans = [&] {
    while (!done) {
      const Pairs found = scan(Keyspace::jobs);
      ASSERT_EQ(found.size(), keys.size());
      for (const auto& [key, value] : found) EXPECT_EQ(value, found.front().second);
    }
  };
  const auto read_snapshots = [&] {
    while (!done) {
      const auto view = storage().snapshot();
      const auto job = *view->get(Keyspace::jobs, "e");
      EXPECT_EQ(job, *view->get(Keyspace::states, "a"));
      EXPECT_EQ(walk(*view->cursor(Keyspace::jobs, "a", "b")).front().second, job);
    }
  };
  std::thread scanning(read_scans);
  std::thread snapshotting(read_snapshots);
  for (int round = 1; round <= kCommits; ++round) write(round);
  done = true;
  scanning.join();
  snapshotting.join();
  EXPECT_EQ(get(Keyspace::jobs, "a"), std::to_string(kCommits));
}

// The same random operations on the storage and on a plain map.
class RandomOperations {
 public:
  explicit RandomOperations(std::uint64_t seed) : random_(seed) {}

  Batch next_batch() {
    Batch batch;
    for (std::uint64_t i = random_.below(8); i > 0; --i) add_mutation(batch);
    return batch;
  }
  std::string key() {
    std::string key(1 + random_.below(2), '\0');
    for (char& byte : key) byte = static_cast<char>(random_.below(5) * 63);
    return key;
  }
  Keyspace keyspace() { return random_.below(2) == 0 ? Keyspace::jobs : Keyspace::states; }
  bool one_in(std::uint64_t n) { return random_.below(n) == 0; }

  Pairs expected(Keyspace keyspace, const std::string& begin, const std::string& end) {
    Pairs found;
    for (const auto& pair : model_[keyspace]) {
      if (pair.first >= begin && (end.empty() || pair.first < end)) found.push_back(pair);
    }
    return found;
  }

 private:
  void add_mutation(Batch& batch) {
    const Keyspace in = keyspace();
    auto& map = model_[in];
    const std::string name = key();
    switch (random_.below(8)) {
      case 0: {
        const std::string end = key();
        batch.erase_range(in, name, end);
        std::erase_if(map, [&](const auto& p) { return p.first >= name && p.first < end; });
        break;
      }
      case 1:
      case 2:
        batch.erase(in, name);
        map.erase(name);
        break;
      default: {
        const std::string value(random_.below(40), static_cast<char>(random_.next_u64()));
        batch.put(in, name, value);
        map[name] = value;
      }
    }
  }

  SeededRandom random_;
  std::map<Keyspace, std::map<std::string, std::string>> model_;
};

TEST_P(StorageConformance, BehavesLikeAMapUnderRandomOperations) {
  constexpr std::uint64_t kSeed = 20260131;
  SCOPED_TRACE(kSeed);
  RandomOperations operations(kSeed);
  for (int step = 0; step < 400; ++step) {
    commit(operations.next_batch());
    if (operations.one_in(100)) reopen();
    if (operations.one_in(50)) {
      const Keyspace keyspace = operations.keyspace();
      const std::string from = operations.key();
      reclaim(keyspace, from, operations.key());
    }
    const std::string begin = operations.key();
    const std::string end = operations.one_in(4) ? std::string() : operations.key();
    for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::states}) {
      ASSERT_EQ(scan(keyspace, begin, end), operations.expected(keyspace, begin, end)) << step;
    }
  }
}

// By whatever way a job comes to be known.
TEST_P(StorageConformance, LiveJobsHaveTheAttributesOfTheirRecords) {
  const std::vector<Scheduling> kinds = {{},
                                         {.fairness_key = "acme"},
                                         {.fairness_key = "acme", .weight = 3},
                                         {.weight = 3},
                                         {.throttle_keys = {"api"}},
                                         {.fairness_key = "zeta", .throttle_keys = {"api", "mail"}},
                                         test::heaviest_attributes()};
  std::map<JobKey, Scheduling> expected;
  const auto push = [&](Seq from, Seq count) {
    Batch batch;
    for (Seq seq = from; seq < from + count; ++seq) {
      const JobKey job{.queue = 1, .seq = seq};
      JobRecord record{.headers = {{"name", std::string(100, 'h')}},
                       .scheduling = kinds[seq % kinds.size()],
                       .payload = std::string(100, 'p')};
      if (seq % 3 == 0) record.expires_at = Timestamp(Duration(seq));
      batch.put(Keyspace::jobs, job_key(job), encode_job(record));
      if (seq % 4 == 0) batch.put(Keyspace::states, job_key(job), encode_state({}));
      expected.emplace(job, record.scheduling);
    }
    commit(batch);
  };
  const auto check = [&] {
    EXPECT_EQ(test::live_attributes(storage()), expected);
    reopen();
    EXPECT_EQ(test::live_attributes(storage()), expected);
  };
  push(1, 100);
  check();
  reclaim(Keyspace::dead, "a", "b");
  check();
  push(101, 100);
  Batch batch;
  for (Seq seq = 1; seq <= 200; ++seq) {
    const std::string key = job_key({.queue = 1, .seq = seq});
    if (seq % 7 == 0) batch.put(Keyspace::states, key, encode_state({}));
    if (seq % 8 == 0) batch.erase(Keyspace::states, key);
    if (seq % 9 != 0) continue;
    batch.erase(Keyspace::jobs, key);
    batch.erase(Keyspace::states, key);
    expected.erase({.queue = 1, .seq = seq});
  }
  commit(batch);
  check();
  reclaim(Keyspace::dead, "a", "b");
  check();
}

INSTANTIATE_TEST_SUITE_P(Kinds, StorageConformance, testing::ValuesIn(test::all_storage_backends()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace reprise::storage
