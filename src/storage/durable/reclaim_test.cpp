// Reclaim: nothing of a queue that was deleted is left in any file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using test::any_file_holds;

class Reclaim : public testing::Test {
 protected:
  static constexpr std::string_view kMarker = "MARKER-of-the-queue-that-goes";
  static constexpr std::string_view kOther = "OTHER-of-the-queue-that-stays";

  std::unique_ptr<Storage> open(DurableOptions options = {}) {
    options.directory = path_;
    auto opened = open_durable_storage(options);
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  // 200 jobs in each of the queues 1 to 3. They do not compress, so that a marker stays readable.
  void fill(Storage& storage, Seq from) {
    Batch batch;
    for (Seq seq = from; seq < from + 200; ++seq) {
      for (const QueueNumber queue : {1U, 2U, 3U}) {
        const std::string_view text = queue == 2 ? kMarker : kOther;
        batch.put(Keyspace::jobs, job_key({.queue = queue, .seq = seq}),
                  std::string(text) + std::to_string(seq * 0x9E3779B97F4A7C15));
      }
    }
    ASSERT_TRUE(storage.commit(batch, Durability::synced));
  }
  void write_out(Storage& storage) { ASSERT_TRUE(storage.reclaim(Keyspace::dead, "a", "b")); }
  void erase_queue_2(Storage& storage) {
    Batch batch;
    batch.erase_range(Keyspace::jobs, queue_begin(2), queue_end(2));
    ASSERT_TRUE(storage.commit(batch, Durability::synced));
  }
  void reclaim_queue_2(Storage& storage) {
    const auto status = storage.reclaim(Keyspace::jobs, queue_begin(2), queue_end(2));
    ASSERT_TRUE(status) << status.error().detail;
  }
  std::size_t count(Storage& storage, QueueNumber queue) {
    std::size_t jobs = 0;
    EXPECT_TRUE(storage.scan(Keyspace::jobs, queue_begin(queue), queue_end(queue), [&](auto, auto) {
      ++jobs;
      return true;
    }));
    return jobs;
  }

  const test::TempDirectory parent_;
  const std::string path_ = parent_ / "data";
};

TEST_F(Reclaim, LeavesNothingOfTheRangeOnDisk) {
  const auto storage = open();
  fill(*storage, 1);  // to table files
  write_out(*storage);
  fill(*storage, 1001);  // to newer ones
  write_out(*storage);
  fill(*storage, 2001);  // in the journal only
  ASSERT_TRUE(any_file_holds(path_, kMarker));
  erase_queue_2(*storage);
  reclaim_queue_2(*storage);
  EXPECT_FALSE(any_file_holds(path_, kMarker));
  EXPECT_TRUE(any_file_holds(path_, kOther));
  EXPECT_EQ(count(*storage, 1), 600U);
  EXPECT_EQ(count(*storage, 2), 0U);
  EXPECT_EQ(count(*storage, 3), 600U);
}

// Segments that held the queue and are used again, or wait for that, or are the one being written.
TEST_F(Reclaim, LeavesNothingInSegmentsThatAreUsedAgain) {
  for (const bool background : {false, true}) {
    SCOPED_TRACE(background);
    const auto storage = open({.overlay_bytes = 30'000,
                               .journal_bytes = 100'000,
                               .segment_bytes_min = 64U << 10,
                               .segment_bytes_max = 64U << 10,
                               .background = background});
    for (Seq from = 1; from < 12'000; from += 400) fill(*storage, from);
    ASSERT_TRUE(any_file_holds(path_, kMarker));
    erase_queue_2(*storage);
    for (int i = 0; i < 3; ++i) write_out(*storage);
    reclaim_queue_2(*storage);
    EXPECT_FALSE(any_file_holds(path_, kMarker));
    EXPECT_GT(count(*storage, 1), 0U);
  }
}

// The same with the marker in the journal alone: pushed and deleted between two checkpoints.
TEST_F(Reclaim, LeavesNothingInTheSegmentThatIsBeingWritten) {
  const auto storage = open({.overlay_bytes = 60'000,
                             .journal_bytes = 100'000,
                             .segment_bytes_min = 32U << 10,
                             .segment_bytes_max = 32U << 10,
                             .background = false});
  Batch batch;
  for (Seq seq = 1; seq < 200; ++seq) {
    batch.clear();
    batch.put(Keyspace::jobs, job_key({.queue = 2, .seq = seq}),
              std::string(kMarker) + std::string(4000, 'm'));
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
  }
  erase_queue_2(*storage);
  reclaim_queue_2(*storage);
  EXPECT_FALSE(any_file_holds(path_, kMarker));
}

TEST_F(Reclaim, OfARangeErasedInAnEarlierRunWorksToo) {
  {
    const auto storage = open();
    fill(*storage, 1);
    write_out(*storage);
    erase_queue_2(*storage);
    write_out(*storage);
  }
  const auto storage = open();
  reclaim_queue_2(*storage);
  EXPECT_FALSE(any_file_holds(path_, kMarker));
  EXPECT_EQ(count(*storage, 1), 200U);
}

TEST_F(Reclaim, AfterARestartForgetsTheSegmentsOfBefore) {
  {
    const auto storage = open();
    fill(*storage, 1);
    erase_queue_2(*storage);
  }
  const auto storage = open();
  reclaim_queue_2(*storage);
  EXPECT_FALSE(any_file_holds(path_, kMarker));
  EXPECT_EQ(count(*storage, 1), 200U);
}

// RocksDB 7.8 drops keys in a compaction beside a snapshot that was taken when it had written
// nothing but tables (facebook/rocksdb#13155): the format, for one, and the directory could not be
// opened again.
TEST_F(Reclaim, BesideASnapshotOfANewStorageLosesNothing) {
  for (const Keyspace keyspace : kAllKeyspaces) {
    SCOPED_TRACE(keyspace_name(keyspace));
    const std::string path = parent_ / std::string(keyspace_name(keyspace));
    {
      auto opened = open_durable_storage({.directory = path, .background = false});
      ASSERT_TRUE(opened);
      Storage& storage = **opened;
      const auto snapshot = storage.snapshot();
      for (int round = 0; round < 3; ++round) {
        Batch batch;
        batch.put(keyspace, "a" + std::to_string(round), "value");
        batch.put(keyspace, "z", std::to_string(round));
        ASSERT_TRUE(storage.commit(batch, Durability::synced));
        ASSERT_TRUE(storage.reclaim(keyspace, "a", "b"));
      }
      EXPECT_EQ(*storage.get(keyspace, "z"), "2");
    }
    const auto again = open_durable_storage({.directory = path, .background = false});
    ASSERT_TRUE(again) << again.error().detail;
    for (const char* key : {"a0", "a1", "a2"}) EXPECT_EQ(*(*again)->get(keyspace, key), "value");
    EXPECT_EQ(*(*again)->get(keyspace, "z"), "2");
  }
}

TEST_F(Reclaim, IsSkippedOnceInterrupted) {
  const auto storage = open();
  fill(*storage, 1);
  storage->interrupt_maintenance();
  erase_queue_2(*storage);
  reclaim_queue_2(*storage);
  EXPECT_TRUE(any_file_holds(path_, kMarker));
  EXPECT_EQ(count(*storage, 2), 0U);
}

}  // namespace
}  // namespace reprise::storage
