// The job index: its bytes, and that it says the same as the records do.
#include "storage/durable/job_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/random.h"
#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "support/hex.h"
#include "support/live_attributes.h"
#include "support/memory_disk.h"
#include "support/seeds.h"

namespace reprise::storage {
namespace {

using test::from_hex;
using test::to_hex;

std::string text_of(const Scheduling& scheduling) {
  std::string text = " key " + scheduling.fairness_key + " " + std::to_string(scheduling.weight);
  for (const std::string& key : scheduling.throttle_keys) text += " throttle " + key;
  return text;
}

// What a visitor hears, in an order of its own: text, so that a difference can be read.
class Listener final : public LiveJobVisitor {
 public:
  Status fresh(QueueNumber queue, Priority priority, const Scheduling& scheduling,
               std::span<const Seq> seqs) override {
    EXPECT_FALSE(seqs.empty());
    EXPECT_TRUE(std::ranges::is_sorted(seqs));
    EXPECT_GE(queue, queue_) << "queue by queue";
    queue_ = queue;
    for (const Seq seq : seqs)
      note({queue, seq}, "fresh " + std::to_string(priority) + text_of(scheduling));
    return ok();
  }
  Status other(const LiveJob& job) override {
    EXPECT_GE(job.key.queue, queue_) << "queue by queue";
    queue_ = job.key.queue;
    std::string text = "priority " + std::to_string(job.priority) + text_of(job.scheduling) +
                       " expires " + time(job.expires_at);
    if (job.state) {
      text += " status " + std::to_string(static_cast<int>(job.state->status)) + " failures " +
              std::to_string(job.state->failures) + " due " + time(job.state->due) + " lease " +
              std::to_string(job.state->lease_nonce) + " until " + time(job.state->lease_deadline);
      EXPECT_EQ(*job.state, outline_of(*job.state)) << "more than a restart needs";
    }
    note(job.key, text);
    return ok();
  }
  const std::map<JobKey, std::string>& heard() const { return heard_; }

 private:
  static std::string time(Timestamp time) {
    return std::to_string(time.time_since_epoch().count());
  }
  void note(JobKey job, const std::string& text) {
    EXPECT_TRUE(heard_.emplace(job, text).second) << "twice: " << job.seq;
  }
  std::map<JobKey, std::string> heard_;
  QueueNumber queue_ = 0;
};

constexpr ChunkKey kKey{.queue = 3, .number = 5};

std::map<JobKey, std::string> heard_of(const JobChunk& chunk) {
  Listener listener;
  EXPECT_TRUE(chunk.visit(listener));
  return listener.heard();
}

void expect_round_trip(const JobChunk& chunk) {
  const std::string bytes = chunk.encode();
  const auto decoded = JobChunk::decode(kKey, bytes);
  ASSERT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(decoded->encode(), bytes);
  EXPECT_EQ(heard_of(*decoded), heard_of(chunk));
}

JobState active_state() {
  JobState state;
  state.status = JobStatus::active;
  state.failures = 1;
  state.due = Timestamp(Duration(12345));
  state.lease_nonce = 0xFEDCBA9876543210;
  state.lease_deadline = Timestamp(Duration(99999));
  return state;
}

// Something of everything that format 3 had.
JobChunk plain_chunk() {
  JobChunk chunk(kKey);
  const Seq first = kKey.first_seq();
  chunk.set(first, {.priority = 1});
  chunk.set(first + 3, {.priority = 1});
  chunk.set(first + kChunkJobs - 1, {.priority = 4'000'000'000});
  chunk.set(first + 4, {.priority = 7, .expires_at = Timestamp(Duration(777))});
  chunk.set(first + 5, {.priority = 8, .state = active_state()});
  JobState scheduled;
  scheduled.status = JobStatus::scheduled;
  scheduled.due = Timestamp(Duration(-1));
  chunk.set(first + 300, {.expires_at = Timestamp(Duration(1)), .state = scheduled});
  return chunk;
}

// And attributes.
JobChunk mixed_chunk() {
  JobChunk chunk = plain_chunk();
  const Seq first = kKey.first_seq();
  const Scheduling acme{.fairness_key = "acme", .weight = 3};
  chunk.set(first + 1, {.priority = 1, .scheduling = acme});
  chunk.set(first + 2, {.priority = 2, .scheduling = acme});
  chunk.set(first + 200, {.priority = 1, .scheduling = acme});
  chunk.set(first + 6, {.priority = 1, .scheduling = {.throttle_keys = {"api"}}});
  chunk.set(first + 7, {.expires_at = Timestamp(Duration(777)), .scheduling = acme});
  chunk.set(first + 8, {.scheduling = acme, .state = active_state()});
  return chunk;
}

TEST(JobChunk, KeysAreInTheOrderOfTheirJobs) {
  EXPECT_EQ(chunk_of({.queue = 3, .seq = kKey.first_seq()}), kKey);
  EXPECT_EQ(chunk_of({.queue = 3, .seq = kKey.first_seq() + kChunkJobs - 1}), kKey);
  EXPECT_NE(chunk_of({.queue = 3, .seq = kKey.first_seq() + kChunkJobs}), kKey);
  EXPECT_EQ(parse_chunk_key(encode_chunk_key(kKey)), kKey);
  EXPECT_EQ(parse_chunk_key("short"), std::nullopt);
  EXPECT_LT(encode_chunk_key(kKey), encode_chunk_key({.queue = 3, .number = 256}));
  EXPECT_LT(encode_chunk_key({.queue = 3, .number = 256}), encode_chunk_key({.queue = 4}));
}

TEST(JobChunk, ComesBackAsItWas) {
  expect_round_trip(JobChunk(kKey));
  expect_round_trip(mixed_chunk());
}

// plain_chunk() as format 3 wrote it.
TEST(JobChunk, OfTheFirstVersionIsRead) {
  const auto decoded = JobChunk::decode(
      kKey,
      from_hex("0102010002000380d0acf30e0001ff7f030401070903000000000000050208020139300000000000"
               "001032547698badcfe9f86010000000000ac02030001000000000000000000ffffffffffffffff04"
               "28992a"));
  ASSERT_TRUE(decoded) << decoded.error().detail;
  EXPECT_EQ(heard_of(*decoded), heard_of(plain_chunk()));
  EXPECT_EQ(decoded->encode(), plain_chunk().encode());
}

TEST(JobChunk, HasTheseBytes) {
  JobChunk chunk(kKey);
  const Seq first = kKey.first_seq();
  const Scheduling acme{.fairness_key = "acme", .weight = 3, .throttle_keys = {"api"}};
  chunk.set(first + 1, {.priority = 5});
  chunk.set(first + 2, {.priority = 6, .scheduling = acme});
  chunk.set(first + 4, {.priority = 6, .scheduling = acme});
  chunk.set(first + 5, {.priority = 7, .expires_at = Timestamp(Duration(1)), .scheduling = acme});
  EXPECT_EQ(to_hex(chunk.encode()),
            "02"                      // version
            "01"                      // 1 group with default attributes
            "05"                      // priority
            "000101"                  // a list of 1
            "01"                      // 1 group with others
            "0a0461636d650303617069"  // acme, 3, api
            "06"                      // priority
            "00020202"                // a list of 2
            "01"                      // 1 other
            "05"                      // seq
            "09"                      // flags: ttl, attributes
            "07"                      // priority
            "0100000000000000"        // expires_at
            "0a0461636d650303617069"  // acme, 3, api
            "82289c98");              // checksum
}

TEST(JobChunk, ComesBackDenseWithOneKeyAndTakesABitAJob) {
  JobChunk chunk(kKey);
  const Scheduling acme{.fairness_key = "acme"};
  for (Seq seq = 0; seq < kChunkJobs; ++seq) {
    chunk.set(kKey.first_seq() + seq, {.priority = 1000, .scheduling = acme});
  }
  expect_round_trip(chunk);
  EXPECT_LT(chunk.encode().size(), kChunkJobs / 8 + 32);
}

TEST(JobChunk, ComesBackWithFewKeysAndTakesAByteOrTwoAJob) {
  JobChunk chunk(kKey);
  for (Seq seq = 0; seq < kChunkJobs; ++seq) {
    const std::string key = "tenant-" + std::to_string(seq * 7 % 100);
    chunk.set(kKey.first_seq() + seq, {.priority = 1000, .scheduling = {.fairness_key = key}});
  }
  expect_round_trip(chunk);
  EXPECT_LT(chunk.encode().size(), kChunkJobs * 2);
  std::size_t groups = 0;
  class Groups final : public LiveJobVisitor {
   public:
    explicit Groups(std::size_t& count) : count_(count) {}
    Status fresh(QueueNumber, Priority, const Scheduling&, std::span<const Seq>) override {
      ++count_;
      return ok();
    }
    Status other(const LiveJob&) override { return ok(); }

   private:
    std::size_t& count_;
  } visitor(groups);
  ASSERT_TRUE(chunk.visit(visitor));
  EXPECT_EQ(groups, 100U);
}

// Whatever it does with one job must not take time by the number of keys.
TEST(JobChunk, WithAKeyForEachJobIsFastAndSmall) {
  const std::clock_t began = std::clock();
  JobChunk chunk(kKey);
  const auto key_of = [](Seq seq) { return Scheduling{.fairness_key = "k" + std::to_string(seq)}; };
  for (Seq seq = 0; seq < kChunkJobs; ++seq) {
    chunk.set(kKey.first_seq() + seq, {.priority = 1000, .scheduling = key_of(seq)});
  }
  const std::string bytes = chunk.encode();
  EXPECT_LT(bytes.size(), kChunkJobs * 16);
  auto decoded = JobChunk::decode(kKey, bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(heard_of(*decoded).size(), kChunkJobs);
  // Each becomes another job's, as it may between two checkpoints.
  for (Seq seq = 0; seq < kChunkJobs; ++seq) {
    auto entry = decoded->take(kKey.first_seq() + seq);
    ASSERT_TRUE(entry);
    ASSERT_EQ(entry->scheduling, key_of(seq));
    entry->scheduling = key_of(kChunkJobs - 1 - seq);
    decoded->set(kKey.first_seq() + seq, *std::move(entry));
  }
  EXPECT_EQ(decoded->encode().size(), bytes.size());
  for (Seq seq = 0; seq < kChunkJobs; ++seq) {
    ASSERT_EQ(decoded->take(kKey.first_seq() + seq)->scheduling, key_of(kChunkJobs - 1 - seq));
  }
  EXPECT_TRUE(decoded->empty());
  EXPECT_EQ(decoded->encode(), JobChunk(kKey).encode());
  EXPECT_LT(std::clock() - began, CLOCKS_PER_SEC);
}

TEST(JobChunk, ComesBackDenseAndTakesABitAJob) {
  JobChunk chunk(kKey);
  for (Seq seq = 0; seq < kChunkJobs; ++seq) chunk.set(kKey.first_seq() + seq, {.priority = 1000});
  expect_round_trip(chunk);
  EXPECT_LT(chunk.encode().size(), kChunkJobs / 8 + 32);
}

TEST(JobChunk, ComesBackSparseAndTakesAFewBytesAJob) {
  JobChunk chunk(kKey);
  for (Seq seq = 0; seq < kChunkJobs; seq += 1000)
    chunk.set(kKey.first_seq() + seq, {.priority = 1});
  expect_round_trip(chunk);
  EXPECT_LT(chunk.encode().size(), 64U);
}

TEST(JobChunk, ComesBackAtEveryDensity) {
  for (Seq step = 1; step <= kChunkJobs; step = step * 3 / 2 + 1) {
    for (const Seq offset : {Seq{0}, step - 1}) {
      JobChunk chunk(kKey);
      for (Seq seq = offset; seq < kChunkJobs; seq += step) {
        chunk.set(kKey.first_seq() + seq, {.priority = 1});
      }
      expect_round_trip(chunk);
    }
  }
}

TEST(JobChunk, ComesBackWithAPriorityOfItsOwnForEachJob) {
  JobChunk chunk(kKey);
  for (Seq seq = 0; seq < 2000; ++seq) {
    chunk.set(kKey.first_seq() + seq * 8, {.priority = static_cast<Priority>(seq * 2'000'003)});
  }
  expect_round_trip(chunk);
}

TEST(JobChunk, WithAnyFlippedBitIsDamage) {
  JobChunk dense(kKey);
  for (Seq seq = 0; seq < kChunkJobs; seq += 3) dense.set(kKey.first_seq() + seq, {.priority = 9});
  for (const std::string& bytes :
       {mixed_chunk().encode(), dense.encode(), JobChunk(kKey).encode()}) {
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      const auto decoded = JobChunk::decode(kKey, flipped);
      ASSERT_FALSE(decoded) << bit;
      ASSERT_EQ(decoded.error().code, Errc::corrupt);
    }
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      ASSERT_FALSE(JobChunk::decode(kKey, bytes.substr(0, length))) << length;
    }
  }
}

TEST(JobChunk, TakesOutWhatWasSet) {
  JobChunk chunk = mixed_chunk();
  const Seq first = kKey.first_seq();
  EXPECT_EQ(chunk.seqs().size(), 12U);
  const auto fresh = chunk.take(first + 3);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->priority, 1U);
  EXPECT_FALSE(fresh->state);
  EXPECT_FALSE(chunk.take(first + 3));
  const auto active = chunk.take(first + 5);
  ASSERT_TRUE(active && active->state);
  EXPECT_EQ(active->state->lease_nonce, active_state().lease_nonce);
  const auto keyed = chunk.take(first + 200);
  ASSERT_TRUE(keyed);
  EXPECT_EQ(keyed->priority, 1U);
  EXPECT_EQ(keyed->scheduling, (Scheduling{.fairness_key = "acme", .weight = 3}));
  EXPECT_FALSE(chunk.take(first + 200));
  EXPECT_FALSE(chunk.take(first + 9));
  for (const Seq seq : chunk.seqs()) EXPECT_TRUE(chunk.take(seq));
  EXPECT_TRUE(chunk.empty());
}

TEST(JobChunk, NamesAJobThatWasDamagedWhenItWasNoted) {
  JobChunk chunk(kKey);
  chunk.set(kKey.first_seq() + 1, {.damage = "its checksum is wrong"});
  const auto decoded = JobChunk::decode(kKey, chunk.encode());
  ASSERT_TRUE(decoded);
  Listener listener;
  const Status visited = decoded->visit(listener);
  ASSERT_FALSE(visited);
  EXPECT_EQ(visited.error().code, Errc::corrupt);
  EXPECT_THAT(visited.error().detail,
              testing::AllOf(testing::HasSubstr(encode_job_id(kKey.first_seq() + 1)),
                             testing::HasSubstr("its checksum is wrong")));
}

// --- Against the records ------------------------------------------------------------------------

// Queues in which jobs come, change and go as the engine has them do it.
class RandomJobs {
 public:
  explicit RandomJobs(std::uint64_t seed) : random_(seed) {
    // Chunks of the first queues are begun in their midst, and a boundary is near.
    seq_ = random_.below(2) == 0 ? 1 : kChunkJobs * (1 + random_.below(5)) - random_.below(60);
    open();
  }

  void run() {
    for (int step = 0; step < 120; ++step) {
      Batch batch;
      for (std::uint64_t i = random_.below(10); i > 0; --i) change(batch);
      const auto done = storage_->commit(batch, Durability::synced);
      ASSERT_TRUE(done) << done.error().detail;
      if (random_.below(50) == 0) {
        ASSERT_NO_FATAL_FAILURE(open());
      }
      if (random_.below(60) == 0) {
        disk_.files().crash(test::Loss::pages, random_.next_u64());
        storage_.reset();
        disk_.files().restart();
        ASSERT_NO_FATAL_FAILURE(open());
      }
      ASSERT_NO_FATAL_FAILURE(compare()) << "step " << step;
    }
  }

 private:
  void open() {
    storage_.reset();
    auto opened = open_durable_storage({.directory = "/data",
                                        .block_cache_bytes = 1U << 20,
                                        .overlay_bytes = 2000 + random_.below(20'000),
                                        .journal_bytes = 100'000,
                                        .segment_bytes_min = 4096,
                                        .segment_bytes_max = 16384,
                                        .env = &disk_.env(),
                                        .background = false});
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }

  Timestamp some_time() {
    return Timestamp(Duration(static_cast<std::int64_t>(random_.below(1000))));
  }

  void change(Batch& batch) {
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return push(batch);
      case 4:
      case 5:
      case 6:
        return set_state(batch);
      case 7:
        return erase_state(batch);
      case 8:
        return bury(batch);
      case 9:
        if (random_.below(8) == 0) erase_queue(batch);
        return;
      default:
        return ack(batch);
    }
  }
  void push(Batch& batch) {
    if (random_.below(30) == 0) seq_ += random_.below(2 * kChunkJobs);  // jobs of other queues
    const JobKey job{.queue = static_cast<QueueNumber>(1 + random_.below(3)), .seq = seq_++};
    JobRecord record;
    record.pushed_at = some_time();
    if (random_.below(4) == 0) record.expires_at = some_time();
    if (random_.below(3) == 0) record.priority = static_cast<Priority>(random_.below(5));
    if (random_.below(2) == 0) record.scheduling = some_attributes();
    record.payload = std::string(random_.below(60), 'p');
    batch.put(Keyspace::jobs, job_key(job), encode_job(record));
    jobs_.push_back(job);
    if (random_.below(4) == 0) put_state(batch, job);  // pushed with a delay
  }
  Scheduling some_attributes() {
    if (random_.below(20) == 0) return test::heaviest_attributes();
    Scheduling scheduling;
    if (random_.below(3) != 0) scheduling.fairness_key = std::to_string(random_.below(4));
    if (random_.below(3) == 0) scheduling.weight = 2;
    if (random_.below(3) == 0) scheduling.throttle_keys = {"api", std::string(60, 't')};
    return scheduling;
  }
  void put_state(Batch& batch, JobKey job) {
    JobState state;
    constexpr std::array kStatuses = {JobStatus::scheduled, JobStatus::pending, JobStatus::active,
                                      JobStatus::failed};
    state.status = kStatuses[random_.below(kStatuses.size())];
    state.failures = static_cast<std::uint32_t>(random_.below(3));
    state.attempts = 7;
    state.due = some_time();
    state.worker = "worker";
    state.last_error = std::string(random_.below(30), 'e');
    state.lease_nonce = random_.next_u64();
    state.lease_deadline = some_time();
    batch.put(Keyspace::states, job_key(job), encode_state(state));
  }
  void set_state(Batch& batch) {
    if (!jobs_.empty()) put_state(batch, some_job());
  }
  // Back to fresh, as a release of its first lease does.
  void erase_state(Batch& batch) {
    if (!jobs_.empty()) batch.erase(Keyspace::states, job_key(some_job()));
  }
  void ack(Batch& batch) {
    if (jobs_.empty()) return;
    const JobKey job = take_job();
    batch.erase(Keyspace::jobs, job_key(job));
    batch.erase(Keyspace::states, job_key(job));
  }
  void bury(Batch& batch) {
    if (jobs_.empty()) return;
    const JobKey job = take_job();
    batch.erase(Keyspace::jobs, job_key(job));
    batch.erase(Keyspace::states, job_key(job));
    batch.put(Keyspace::dead, job_key(job), "dead");
    if (random_.below(2) == 0) return;
    // And back, under the same seq.
    batch.erase(Keyspace::dead, job_key(job));
    batch.put(Keyspace::jobs, job_key(job), encode_job({}));
    jobs_.push_back(job);
  }
  void erase_queue(Batch& batch) {
    const auto queue = static_cast<QueueNumber>(1 + random_.below(3));
    if (random_.below(3) == 0) {  // only makes them all fresh
      batch.erase_range(Keyspace::states, queue_begin(queue), queue_end(queue));
      return;
    }
    for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::states, Keyspace::dead}) {
      batch.erase_range(keyspace, queue_begin(queue), queue_end(queue));
    }
    std::erase_if(jobs_, [&](const JobKey& job) { return job.queue == queue; });
  }

  JobKey some_job() { return jobs_[random_.below(jobs_.size())]; }
  JobKey take_job() {
    const auto at = jobs_.begin() + static_cast<std::ptrdiff_t>(random_.below(jobs_.size()));
    const JobKey job = *at;
    jobs_.erase(at);
    return job;
  }

  void compare() {
    Listener from_index;
    const Status visited = storage_->visit_live_jobs(from_index);
    ASSERT_TRUE(visited) << visited.error().detail;
    Listener from_records;
    const Status scanned = scan_live_jobs(*storage_->snapshot(), from_records);
    ASSERT_TRUE(scanned) << scanned.error().detail;
    ASSERT_EQ(from_index.heard(), from_records.heard());
    ASSERT_EQ(from_records.heard().size(), jobs_.size());
  }

  SeededRandom random_;
  test::MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
  Seq seq_ = 1;
  std::vector<JobKey> jobs_;  // that are alive
};

TEST(JobIndex, SaysTheSameAsTheRecordsAtEveryStep) {
  for (std::uint64_t seed = 0; seed < test::seed_count(40); ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(RandomJobs(seed).run());
  }
}

// --- Damage -------------------------------------------------------------------------------------

class JobIndexDamage : public testing::Test {
 protected:
  void SetUp() override {
    auto opened =
        open_durable_storage({.directory = "/data", .env = &disk_.env(), .background = false});
    ASSERT_TRUE(opened);
    storage_ = *std::move(opened);
  }
  void commit(const Batch& batch) { ASSERT_TRUE(storage_->commit(batch, Durability::synced)); }
  void write_out() { ASSERT_TRUE(storage_->reclaim(Keyspace::dead, "a", "b")); }
  // Named by the index as by the records, before and after a checkpoint.
  void expect_named(JobKey job) {
    for (int round = 0; round < 2; ++round) {
      Listener from_index;
      const Status visited = storage_->visit_live_jobs(from_index);
      ASSERT_FALSE(visited);
      EXPECT_EQ(visited.error().code, Errc::corrupt);
      EXPECT_THAT(visited.error().detail, testing::HasSubstr(describe_job(job_key(job))));
      Listener from_records;
      EXPECT_FALSE(scan_live_jobs(*storage_->snapshot(), from_records));
      write_out();
    }
  }

  test::MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
  const JobKey job_{.queue = 1, .seq = 77};
};

TEST_F(JobIndexDamage, AStateThatCannotBeReadIsNamed) {
  Batch batch;
  batch.put(Keyspace::jobs, job_key(job_), encode_job({}));
  batch.put(Keyspace::states, job_key(job_), "rubbish");
  commit(batch);
  expect_named(job_);
}

TEST_F(JobIndexDamage, ARecordThatCannotBeReadIsNamed) {
  Batch batch;
  batch.put(Keyspace::jobs, job_key(job_), "rubbish");
  commit(batch);
  expect_named(job_);
}

TEST_F(JobIndexDamage, AStateWithoutItsRecordIsNamed) {
  Batch batch;
  batch.put(Keyspace::states, job_key(job_), encode_state({}));
  commit(batch);
  expect_named(job_);
}

TEST_F(JobIndexDamage, AJobThatIsDroppedIsNotNamedAnyMore) {
  Batch batch;
  batch.put(Keyspace::jobs, job_key(job_), "rubbish");
  commit(batch);
  write_out();
  batch.clear();
  batch.erase(Keyspace::jobs, job_key(job_));
  commit(batch);
  for (int round = 0; round < 2; ++round) {
    Listener listener;
    EXPECT_TRUE(storage_->visit_live_jobs(listener));
    EXPECT_TRUE(listener.heard().empty());
    write_out();
  }
}

}  // namespace
}  // namespace reprise::storage
