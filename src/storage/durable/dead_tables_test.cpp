// Tables of jobs that are all gone are thrown away whole, and nothing else is.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "storage/durable/durable_storage.h"
#include "storage/durable/job_index.h"
#include "storage/keys.h"
#include "storage/rocksdb/database.h"
#include "storage/rocksdb/table_writer.h"
#include "support/memory_disk.h"
#include "support/storage_contents.h"

namespace reprise::storage {
namespace {

using test::Contents;
using test::Loss;

constexpr char kDeadTablesDirectory[] = "/disk/data";
constexpr Seq kJobsOfATable = 300;

// A storage on its own disk, what should be in it, and how many tables its jobs take.
class DeadTables : public testing::Test {
 protected:
  DeadTables() { open(); }

  void open() {
    auto opened = open_durable_storage(
        {.directory = kDeadTablesDirectory, .env = &disk_.env(), .background = false});
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }
  void commit(const Batch& batch) {
    const Status done = storage_->commit(batch, Durability::synced);
    ASSERT_TRUE(done) << done.error().detail;
    test::apply(batch, contents_);
  }
  // What is committed goes to the base.
  Status checkpoint() { return storage_->reclaim(Keyspace::dead, "a", "b"); }
  void write_out() {
    const Status done = checkpoint();
    ASSERT_TRUE(done) << done.error().detail;
  }

  static std::string key(Seq seq, QueueNumber queue = 1) {
    return job_key({.queue = queue, .seq = seq});
  }
  // One table more, of jobs from seq on.
  void push_a_table(Seq seq, QueueNumber queue = 1) {
    Batch batch;
    for (Seq end = seq + kJobsOfATable; seq < end; ++seq) {
      batch.put(Keyspace::jobs, key(seq, queue), "job " + std::to_string(seq));
    }
    commit(batch);
    write_out();
  }
  // Those in [begin, end), but for one.
  void erase(Seq begin, Seq end, Seq but_for = 0) {
    Batch batch;
    for (Seq seq = begin; seq < end; ++seq) {
      if (seq != but_for) batch.erase(Keyspace::jobs, key(seq));
    }
    commit(batch);
  }

  void expect_contents() {
    const auto found = test::read_contents(*storage_);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(test::difference(contents_, *found), "");
  }
  void expect_contents_now_and_after_a_restart() {
    ASSERT_NO_FATAL_FAILURE(expect_contents());
    storage_.reset();
    ASSERT_NO_FATAL_FAILURE(open());
    ASSERT_NO_FATAL_FAILURE(expect_contents());
  }

  std::unique_ptr<Database> open_base() {
    storage_.reset();
    auto base = Database::open({.directory = std::string(kDeadTablesDirectory) + "/db",
                                .env = &disk_.env(),
                                .compacts = false});
    EXPECT_TRUE(base) << base.error().detail;
    return *std::move(base);
  }
  // The storage is closed meanwhile.
  std::size_t tables(Keyspace keyspace = Keyspace::jobs) {
    ::rocksdb::ColumnFamilyMetaData known;
    {
      const auto base = open_base();
      (*base)->GetColumnFamilyMetaData(base->family(keyspace), &known);
    }
    open();
    return known.file_count;
  }

  test::MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
  Contents contents_;
};

TEST_F(DeadTables, AreGoneWithTheLastOfTheirJobs) {
  for (const Seq seq : {1U, 301U, 601U}) push_a_table(seq);
  ASSERT_EQ(tables(), 3U);
  erase(1, 601);
  write_out();
  EXPECT_EQ(tables(), 1U) << "and there are no tombstones";
  expect_contents_now_and_after_a_restart();
  erase(601, 901);
  write_out();
  EXPECT_EQ(tables(), 0U);
  expect_contents_now_and_after_a_restart();
}

TEST_F(DeadTables, AreThoseOfOneQueueOrOfSeveral) {
  push_a_table(1, 1);
  Batch batch;
  for (Seq seq = 1000; seq < 1100; ++seq) {
    for (const QueueNumber queue : {2U, 3U}) batch.put(Keyspace::jobs, key(seq, queue), "job");
  }
  commit(batch);
  write_out();
  ASSERT_EQ(tables(), 2U);
  batch.clear();
  for (Seq seq = 1000; seq < 1100; ++seq) {
    for (const QueueNumber queue : {2U, 3U}) batch.erase(Keyspace::jobs, key(seq, queue));
  }
  commit(batch);
  write_out();
  EXPECT_EQ(tables(), 1U);
  expect_contents_now_and_after_a_restart();
}

TEST_F(DeadTables, AreNoneWithASingleJobLeft) {
  Seq first = 1;
  for (const Seq left : {0U, 150U, 299U}) {
    SCOPED_TRACE(left);
    const std::size_t others = tables();
    push_a_table(first);
    erase(first, first + kJobsOfATable, first + left);
    write_out();
    EXPECT_EQ(tables(), others + 2) << "the jobs and their tombstones";
    expect_contents_now_and_after_a_restart();
    erase(first + left, first + left + 1);
    write_out();
    expect_contents_now_and_after_a_restart();
    first += kJobsOfATable;
  }
}

// What was erased before stays erased: a table that others reach over may hold what they hide.
TEST_F(DeadTables, StayWhereAnotherReachesOverThem) {
  push_a_table(1);
  erase(100, 200);
  write_out();
  ASSERT_EQ(tables(), 2U);
  erase(1, 100);
  erase(200, 301);
  write_out();
  EXPECT_GE(tables(), 2U);
  expect_contents_now_and_after_a_restart();
}

// A job that came back and was erased again is erased, and counts for none.
TEST_F(DeadTables, AreNotMistakenBecauseOfJobsThatTheyDoNotHold) {
  push_a_table(1);
  erase(50, 51);
  write_out();
  ASSERT_EQ(tables(), 2U);
  push_a_table(301);
  erase(301, 601, 450);
  Batch again;
  again.put(Keyspace::jobs, key(50), "once more");
  again.erase(Keyspace::jobs, key(50));
  commit(again);
  write_out();
  expect_contents_now_and_after_a_restart();
}

TEST_F(DeadTables, StayForASnapshotOfBefore) {
  push_a_table(1);
  const Contents before = contents_;
  auto snapshot = storage_->snapshot();
  erase(1, 301);
  write_out();
  auto found = test::read_contents(*snapshot);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(test::difference(before, *found), "");
  expect_contents();
  snapshot.reset();
  EXPECT_GE(tables(), 1U);
  expect_contents_now_and_after_a_restart();
}

TEST_F(DeadTables, StayForASnapshotOfLongBefore) {
  push_a_table(1);
  push_a_table(301);
  const Contents before = contents_;
  auto snapshot = storage_->snapshot();
  push_a_table(601);  // checkpoints that have nothing to do with it
  push_a_table(901);
  erase(1, 601);
  write_out();
  const auto found = test::read_contents(*snapshot);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(test::difference(before, *found), "");
  snapshot.reset();
  expect_contents_now_and_after_a_restart();
}

TEST_F(DeadTables, AreNotKeptByASnapshotOfAfter) {
  push_a_table(1);
  push_a_table(301);
  erase(1, 301);
  auto snapshot = storage_->snapshot();
  write_out();
  const auto found = test::read_contents(*snapshot);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(test::difference(contents_, *found), "");
  snapshot.reset();
  EXPECT_EQ(tables(), 1U);
}

TEST_F(DeadTables, AreStillInABackupOfBefore) {
  push_a_table(1);
  const Contents before = contents_;
  ASSERT_TRUE(storage_->backup("/disk/copy"));
  erase(1, 301);
  ASSERT_TRUE(storage_->backup("/disk/later"));
  ASSERT_EQ(tables(), 0U);
  for (const auto& [path, expected] :
       {std::pair("/disk/copy", before), {"/disk/later", contents_}}) {
    SCOPED_TRACE(path);
    auto copy = open_durable_storage({.directory = path, .env = &disk_.env(), .background = false});
    ASSERT_TRUE(copy) << copy.error().detail;
    const auto found = test::read_contents(**copy);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(test::difference(expected, *found), "");
  }
}

// The erasures are synced before it, so whatever step it gets to, they are all there is to see.
TEST_F(DeadTables, PowerCutAtAnyStepOfTheCheckpointThatDropsThem) {
  for (const Seq seq : {1U, 301U, 601U}) push_a_table(seq);
  erase(1, 450);
  storage_.reset();
  const auto image = disk_.image(kDeadTablesDirectory);
  // Opens it, finds what should be there, and commits what changes nothing, but a checkpoint comes
  // with it. The changes that it made to the disk.
  const auto live = [this](test::MemoryDisk& disk, std::uint64_t crash_at) -> std::uint64_t {
    auto opened = open_durable_storage({.directory = kDeadTablesDirectory,
                                        .overlay_bytes = 1,
                                        .env = &disk.env(),
                                        .background = false});
    EXPECT_TRUE(opened) << opened.error().detail;
    if (!opened) return 0;
    const auto found = test::read_contents(**opened);
    EXPECT_TRUE(found && test::difference(contents_, *found).empty());
    Batch nothing;
    nothing.erase(Keyspace::keys, "a key that never was");
    const std::uint64_t before = disk.files().operations();
    disk.files().crash_at(crash_at);
    (void)(*opened)->commit(nothing, Durability::synced).has_value();
    const std::uint64_t changes = disk.files().operations() - before;
    if (crash_at != 0) disk.files().crash(static_cast<Loss>(crash_at % 3), crash_at);
    return changes;
  };
  std::uint64_t steps = 0;
  {
    test::MemoryDisk disk;
    disk.load(kDeadTablesDirectory, image);
    steps = live(disk, 0);
  }
  ASSERT_GT(steps, 20U);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE(step);
    test::MemoryDisk disk;
    disk.load(kDeadTablesDirectory, image);
    live(disk, step);
    disk.files().restart();
    live(disk, 0);
    live(disk, 0);
    if (HasFailure()) return;
  }
}

// The index has lost a job that the table still has: neither may be thrown away, or what a salvage
// could find would be gone.
TEST_F(DeadTables, StayWhenTheIndexDoesNotKnowAllOfTheirJobs) {
  push_a_table(1);
  {
    const auto base = open_base();
    const ChunkKey chunk_key = chunk_of({.queue = 1, .seq = 1});
    const std::string stored_key = encode_chunk_key(chunk_key);
    const auto bytes = base->read({}, base->index(), stored_key);
    ASSERT_TRUE(bytes && *bytes);
    auto chunk = JobChunk::decode(chunk_key, **bytes);
    ASSERT_TRUE(chunk);
    ASSERT_TRUE(chunk->take(150));
    TableWriter writer(*base, std::string(kDeadTablesDirectory) + "/checkpoint");
    ASSERT_TRUE(writer.put(base->index(), stored_key, chunk->encode()));
    ASSERT_TRUE(writer.ingest());
  }
  open();
  erase(1, 301, 150);
  write_out();
  EXPECT_EQ(tables(), 2U);
  expect_contents_now_and_after_a_restart();
}

// A job that was leased and acked since the last checkpoint had no state in the base.
TEST_F(DeadTables, WithoutATableThereIsNoTombstoneEither) {
  push_a_table(1);
  Batch batch;
  for (Seq seq = 1; seq <= 20; ++seq) batch.put(Keyspace::states, key(seq), "leased");
  commit(batch);
  batch.clear();
  for (Seq seq = 1; seq <= 20; ++seq) {
    batch.erase(Keyspace::states, key(seq));
    batch.erase(Keyspace::jobs, key(seq));
  }
  commit(batch);
  write_out();
  EXPECT_EQ(tables(Keyspace::states), 0U);
  expect_contents_now_and_after_a_restart();
}

}  // namespace
}  // namespace reprise::storage
