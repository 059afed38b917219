#include "broker/batch_ledger.h"

#include <gtest/gtest.h>

#include "broker/core.h"
#include "storage/keys.h"
#include "storage/memory/memory_storage.h"
#include "storage/records.h"
#include "support/gated_storage.h"

namespace reprise {
namespace {

constexpr JobKey kJob{1, 7};

RecordPtr record_of(std::string payload) {
  auto record = std::make_shared<JobRecord>();
  record->payload = std::move(payload);
  return record;
}

class BatchLedgerTest : public ::testing::Test {
 protected:
  void commit() {
    auto [number, changes] = ledger.seal();
    ASSERT_TRUE(BrokerCore::commit(*storage, changes, storage::Durability::synced).has_value());
    ledger.settled(number);
  }
  bool stored(storage::Keyspace keyspace, JobKey job) {
    return storage->get(keyspace, storage::job_key(job))->has_value();
  }
  JobState stored_state(JobKey job) {
    return *storage::decode_state(
        storage->get(storage::Keyspace::states, storage::job_key(job))->value());
  }

  std::unique_ptr<storage::Storage> storage = storage::make_memory_storage();
  BatchLedger ledger{*storage, /*cache_bytes=*/1 << 20};
};

TEST_F(BatchLedgerTest, ReadsSeeChangesThatAreNotCommitted) {
  ledger.put_job(kJob, record_of("a"), 0);
  EXPECT_EQ((*ledger.record(kJob))->payload, "a");
  EXPECT_EQ(*ledger.state(kJob), nullptr);
  EXPECT_FALSE(stored(storage::Keyspace::jobs, kJob));
  ledger.erase_job(kJob);
  EXPECT_EQ(*ledger.record(kJob), nullptr);
}

TEST_F(BatchLedgerTest, ReadsSeeABatchWhileItIsBeingCommitted) {
  ledger.put_job(kJob, record_of("a"), 0);
  auto [number, changes] = ledger.seal();
  EXPECT_EQ((*ledger.record(kJob))->payload, "a");
  ledger.erase_job(kJob);  // in the next batch
  ledger.settled(number);
  EXPECT_EQ(*ledger.record(kJob), nullptr);
}

TEST_F(BatchLedgerTest, BuryMovesTheJobAmongTheDead) {
  ledger.put_job(kJob, record_of("a"), 0);
  ledger.put_state(kJob, std::make_shared<JobState>(JobState{.attempts = 1}));
  commit();
  ledger.bury(kJob, {record_of("a"), std::make_shared<JobState>(JobState{.attempts = 1})});
  EXPECT_EQ(*ledger.record(kJob), nullptr);
  EXPECT_NE(ledger.dead(kJob)->record, nullptr);
  commit();
  EXPECT_FALSE(stored(storage::Keyspace::jobs, kJob));
  EXPECT_FALSE(stored(storage::Keyspace::states, kJob));
  EXPECT_TRUE(stored(storage::Keyspace::dead, kJob));
  EXPECT_EQ(ledger.dead(kJob)->record->payload, "a");
  ledger.erase_dead(kJob, {});
  EXPECT_EQ(ledger.dead(kJob)->record, nullptr);
  commit();
  EXPECT_EQ(ledger.dead(kJob)->record, nullptr);
}

TEST_F(BatchLedgerTest, AStateThatIsTakenIsTheSameObjectWhenNoBatchOnItsWayNeedsIt) {
  ledger.put_job(kJob, record_of("a"), 0);
  ledger.put_state(kJob, std::make_shared<JobState>(JobState{.attempts = 1}));
  const JobState* object = ledger.state(kJob)->get();
  StateDraft taken = *ledger.take_state(kJob);
  EXPECT_EQ(taken.get(), object) << "of the open batch, which will write what takes its place";
  EXPECT_EQ(*ledger.state(kJob), nullptr);
  taken->attempts = 2;
  ledger.put_state(kJob, std::move(taken));
  commit();
  taken = *ledger.take_state(kJob);
  EXPECT_EQ(taken.get(), object) << "of a batch that is settled";
  ledger.put_state(kJob, std::move(taken));
}

TEST_F(BatchLedgerTest, AStateThatABatchOnItsWayNeedsIsCopiedWhenItIsTaken) {
  ledger.put_job(kJob, record_of("a"), 0);
  ledger.put_state(kJob, std::make_shared<JobState>(JobState{.attempts = 1}));
  auto [number, changes] = ledger.seal();
  StateDraft taken = *ledger.take_state(kJob);
  taken->attempts = 2;
  ledger.put_state(kJob, std::move(taken));
  ASSERT_TRUE(BrokerCore::commit(*storage, changes, storage::Durability::synced).has_value());
  EXPECT_EQ(stored_state(kJob).attempts, 1U);
  EXPECT_EQ((*ledger.state(kJob))->attempts, 2U);
  ledger.settled(number);
  commit();
  EXPECT_EQ(stored_state(kJob).attempts, 2U);
}

TEST_F(BatchLedgerTest, AStateThatSomebodyHasIsCopiedWhenItIsTaken) {
  ledger.put_state(kJob, std::make_shared<JobState>(JobState{.attempts = 1}));
  commit();
  const StatePtr seen = *ledger.state(kJob);
  StateDraft taken = *ledger.take_state(kJob);
  taken->attempts = 2;
  ledger.put_state(kJob, std::move(taken));
  EXPECT_EQ(seen->attempts, 1U);
}

TEST_F(BatchLedgerTest, OfTheStatesOfOneBatchOnlyTheLastIsWritten) {
  ledger.put_job(kJob, record_of("a"), 0);
  for (std::uint32_t attempts = 1; attempts <= 3; ++attempts) {
    ledger.put_state(kJob, std::make_shared<JobState>(JobState{.attempts = attempts}));
  }
  EXPECT_EQ(ledger.open_changes().changes.size(), 2U);
  ledger.encode_ahead();
  StateDraft taken = *ledger.take_state(kJob);
  taken->attempts = 4;
  ledger.put_state(kJob, std::move(taken));
  EXPECT_EQ(ledger.open_changes().changes.size(), 3U) << "what is encoded stays";
  commit();
  EXPECT_EQ(stored_state(kJob).attempts, 4U);
}

TEST_F(BatchLedgerTest, AStateOfAJobThatIsErasedInTheSameBatchIsNotWritten) {
  ledger.put_job(kJob, record_of("a"), 0);
  ledger.put_state(kJob, std::make_shared<JobState>());
  StateDraft taken = *ledger.take_state(kJob);
  ledger.erase_job(kJob);
  ledger.put_job(kJob, record_of("b"), 0);
  taken->attempts = 2;
  ledger.put_state(kJob, std::move(taken));
  commit();
  EXPECT_TRUE(stored(storage::Keyspace::jobs, kJob));
  EXPECT_EQ(stored_state(kJob).attempts, 2U) << "behind the erasure";
  (void)ledger.take_state(kJob).value();
  ledger.bury(kJob, {record_of("b"), std::make_shared<JobState>()});
  commit();
  EXPECT_FALSE(stored(storage::Keyspace::states, kJob));
}

TEST_F(BatchLedgerTest, KeysAreSeenBeforeAndAfterTheirCommit) {
  const KeyEntry entry{.seq = 7, .expires_at = Timestamp{Duration{5}}};
  EXPECT_EQ(*ledger.key(1, "k"), std::nullopt);
  ledger.put_key(1, "k", entry);
  EXPECT_EQ(*ledger.key(1, "k"), entry);
  EXPECT_EQ(*ledger.key(2, "k"), std::nullopt);
  commit();
  EXPECT_EQ(*ledger.key(1, "k"), entry);
  ledger.erase_key(1, "k");
  EXPECT_EQ(*ledger.key(1, "k"), std::nullopt);
  commit();
  EXPECT_EQ(*ledger.key(1, "k"), std::nullopt);
}

TEST_F(BatchLedgerTest, AKeyChangedAgainIsNotForgottenWithItsFirstBatch) {
  ledger.put_key(1, "k", {.seq = 7});
  const auto [first, changes] = ledger.seal();
  ledger.put_key(1, "k", {.seq = 8});
  ledger.settled(first);
  EXPECT_EQ((*ledger.key(1, "k"))->seq, 8U);
}

TEST_F(BatchLedgerTest, CacheStaysWithinItsBoundOnceBatchesAreSettled) {
  BatchLedger small(*storage, /*cache_bytes=*/64 << 10);
  const std::string payload(1024, 'x');
  for (Seq seq = 1; seq <= 500; ++seq) small.put_job({1, seq}, record_of(payload), 0);
  // Nothing that is not committed may be forgotten, whatever the bound.
  EXPECT_GT(small.cached_bytes(), 500U * 1024);
  EXPECT_EQ((*small.record({1, 1}))->payload, payload);
  auto [number, changes] = small.seal();
  ASSERT_TRUE(BrokerCore::commit(*storage, changes, storage::Durability::synced).has_value());
  small.settled(number);
  EXPECT_LE(small.cached_bytes(), 64U << 10);
  EXPECT_EQ((*small.record({1, 2}))->payload, payload);  // from storage
  EXPECT_GT(small.misses(), 0U);
}

// What is pushed to a queue that the cache cannot hold is claimed after what is in the cache by
// now.
TEST_F(BatchLedgerTest, TheEndOfALargeQueueLeavesWithItsBatch) {
  constexpr std::uint64_t kCacheBytes = 64U << 10;
  constexpr Seq kJobs = 200;
  BatchLedger small(*storage, kCacheBytes);
  const std::string payload(1024, 'x');
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    small.put_job({1, seq}, record_of(payload + std::to_string(seq)), seq);
  }
  EXPECT_GT(small.cached_bytes(), kJobs * 1024) << "a batch on its way is all there";
  EXPECT_EQ((*small.record({1, kJobs}))->payload, payload + std::to_string(kJobs));
  auto [number, changes] = small.seal();
  ASSERT_TRUE(BrokerCore::commit(*storage, changes, storage::Durability::synced).has_value());
  small.settled(number);
  const auto is_cached = [&](Seq seq) {
    const std::uint64_t hits = small.hits();
    EXPECT_EQ((*small.record({1, seq}))->payload, payload + std::to_string(seq));
    return small.hits() > hits;
  };
  EXPECT_TRUE(is_cached(1));
  EXPECT_TRUE(is_cached(30));
  EXPECT_FALSE(is_cached(kJobs));
  EXPECT_FALSE(is_cached(100));
}

TEST_F(BatchLedgerTest, AJobThatIsAskedForAgainStays) {
  constexpr std::uint64_t kLarge = 10'000;
  ledger.put_job({1, 1}, record_of("a"), kLarge);
  ledger.put_job({1, 2}, record_of("b"), kLarge);
  auto [first, changes] = ledger.seal();
  ASSERT_TRUE(BrokerCore::commit(*storage, changes, storage::Durability::synced).has_value());
  EXPECT_EQ((*ledger.record({1, 1}))->payload, "a");  // by the next batch
  ledger.settled(first);
  const std::uint64_t hits = ledger.hits();
  EXPECT_EQ((*ledger.record({1, 1}))->payload, "a");
  EXPECT_EQ(ledger.hits(), hits + 1);
  EXPECT_EQ((*ledger.record({1, 2}))->payload, "b");
  EXPECT_EQ(ledger.hits(), hits + 1);
}

// In one batch, and while it is on its way.
TEST_F(BatchLedgerTest, AJobOfALargeQueueMayBePutAndErasedAnyNumberOfTimes) {
  constexpr std::uint64_t kLarge = 10'000;
  ledger.put_job(kJob, record_of("a"), kLarge);
  ledger.put_job(kJob, record_of("b"), kLarge);
  ledger.erase_job(kJob);
  ledger.put_job(kJob, record_of("c"), kLarge);
  ledger.put_job({1, 8}, record_of("gone at once"), kLarge);
  ledger.erase_job({1, 8});
  auto [first, changes] = ledger.seal();
  ASSERT_TRUE(BrokerCore::commit(*storage, changes, storage::Durability::synced).has_value());
  ledger.put_job(kJob, record_of("d"), kLarge);
  auto [second, more_changes] = ledger.seal();
  ledger.settled(first);
  EXPECT_EQ((*ledger.record(kJob))->payload, "d");
  ASSERT_TRUE(BrokerCore::commit(*storage, more_changes, storage::Durability::synced).has_value());
  ledger.erase_job(kJob);
  ledger.settled(second);
  EXPECT_EQ(*ledger.record(kJob), nullptr);
  EXPECT_EQ(*ledger.record({1, 8}), nullptr);
  ASSERT_NO_FATAL_FAILURE(commit());
  EXPECT_FALSE(stored(storage::Keyspace::jobs, kJob));
}

TEST_F(BatchLedgerTest, ABatchThatWasEncodedAheadIsTheSame) {
  BatchLedger other(*storage, /*cache_bytes=*/1 << 20);
  for (BatchLedger* each : {&ledger, &other}) {
    for (Seq seq = 1; seq <= 5; ++seq) {
      each->put_job({1, seq}, record_of("a" + std::to_string(seq)), 0);
      if (each == &ledger) each->encode_ahead();
    }
    each->erase_job({1, 3});
  }
  auto ahead = ledger.seal().second;
  EXPECT_EQ(ahead.encoded_changes, 5U);
  auto at_once = other.seal().second;
  EXPECT_EQ(at_once.encoded_changes, 0U);
  encode(ahead);
  encode(at_once);
  EXPECT_EQ(ahead.encoded.count(), at_once.encoded.count());
  EXPECT_EQ(ahead.encoded.bytes(), at_once.encoded.bytes());
  // What follows begins anew.
  ledger.put_job(kJob, record_of("b"), 0);
  EXPECT_EQ(ledger.open_changes().encoded_changes, 0U);
}

TEST_F(BatchLedgerTest, ALargeBatchIsNotEncodedAhead) {
  ledger.put_job(kJob, record_of(std::string(5 << 20, 'x')), 0);
  ledger.encode_ahead();
  EXPECT_EQ(ledger.open_changes().encoded_changes, 0U);
}

TEST_F(BatchLedgerTest, FinishedJobsLeaveTheCache) {
  for (Seq seq = 1; seq <= 100; ++seq) ledger.put_job({1, seq}, record_of("x"), 0);
  commit();
  for (Seq seq = 1; seq <= 100; ++seq) ledger.erase_job({1, seq});
  commit();
  EXPECT_EQ(ledger.cached_bytes(), 0U);
}

TEST_F(BatchLedgerTest, DamagedRecordIsCorruptAndItsBytesCanStillBeHad) {
  ledger.put_job(kJob, record_of("payload"), 0);
  commit();
  std::string bytes = **storage->get(storage::Keyspace::jobs, storage::job_key(kJob));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  storage::Batch batch;
  batch.put(storage::Keyspace::jobs, storage::job_key(kJob), bytes);
  ASSERT_TRUE(storage->commit(batch, storage::Durability::synced).has_value());
  BatchLedger fresh(*storage, 1 << 20);
  const auto record = fresh.record(kJob);
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, Errc::corrupt);
  EXPECT_NE(record.error().detail.find(encode_job_id(kJob.seq)), std::string::npos);
  EXPECT_EQ(fresh.raw_record(kJob), bytes);
  EXPECT_EQ(fresh.stored_byte_size(kJob), record_of("payload")->byte_size());
  bytes[28] = '\xFF';  // the size's highest byte
  batch.clear();
  batch.put(storage::Keyspace::jobs, storage::job_key(kJob), bytes);
  ASSERT_TRUE(storage->commit(batch, storage::Durability::synced).has_value());
  EXPECT_LE(fresh.stored_byte_size(kJob), bytes.size());
}

// --- Reading ahead.

class BatchLedgerReadAhead : public BatchLedgerTest {
 protected:
  static constexpr Seq kJobs = 1000;
  static JobKey job(Seq seq) { return {1, seq}; }

  void SetUp() override {
    for (Seq seq = 1; seq <= kJobs; ++seq) {
      ledger.put_job(job(seq), record_of("payload " + std::to_string(seq)), 0);
    }
    ledger.put_state(job(500), std::make_shared<JobState>(JobState{.attempts = 3}));
    commit();
  }
  // One that has nothing in its cache yet.
  BatchLedger cold{*storage, /*cache_bytes=*/1 << 20};
};

TEST_F(BatchLedgerReadAhead, AQueueThatIsReadInOrderIsReadInLargeSteps) {
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    const auto record = cold.record(job(seq));
    ASSERT_TRUE(record) << seq;
    EXPECT_EQ((*record)->payload, "payload " + std::to_string(seq));
    const auto state = cold.state(job(seq));
    ASSERT_TRUE(state) << seq;
    EXPECT_EQ(*state ? (*state)->attempts : 0, seq == 500 ? 3U : 0U) << seq;
  }
  EXPECT_LE(cold.misses(), 20U);
}

// Seqs are the server's, not the queue's: most between two jobs may be those of other queues.
TEST_F(BatchLedgerReadAhead, AQueueWithFewOfTheSeqsIsReadInLargeStepsToo) {
  constexpr Seq kApart = 12;
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ledger.put_job({2, seq * kApart}, record_of("payload " + std::to_string(seq)), 0);
  }
  commit();
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    const auto record = cold.record({2, seq * kApart});
    ASSERT_TRUE(record) << seq;
    EXPECT_EQ((*record)->payload, "payload " + std::to_string(seq));
  }
  EXPECT_LE(cold.misses(), 25U);
}

// What is read in order, storage is told of before: each stretch once, none of it behind the
// reader.
TEST(BatchLedgerPrefetch, GoesAheadOfWhatIsReadInOrder) {
  constexpr Seq kJobs = 20'000;
  test::GatedStorage storage;
  BatchLedger ledger(storage, /*cache_bytes=*/1 << 20);
  for (Seq seq = 1; seq <= kJobs; ++seq) ledger.put_job({1, seq}, record_of("payload"), 0);
  auto [number, changes] = ledger.seal();
  ASSERT_TRUE(BrokerCore::commit(storage, changes, storage::Durability::synced).has_value());

  BatchLedger cold(storage, /*cache_bytes=*/1 << 20);
  Seq told_up_to = 0;
  std::size_t told = 0;
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ASSERT_TRUE(cold.record({1, seq}));
    const auto ranges = storage.prefetched();
    for (; told < ranges.size(); ++told) {
      const Seq begin = storage::parse_job_key(ranges[told].first)->seq;
      const Seq end = storage::parse_job_key(ranges[told].second)->seq;
      EXPECT_GT(begin, seq);
      EXPECT_GE(begin, told_up_to) << "told twice";
      EXPECT_LT(end, seq + 10'000);
      told_up_to = end;
    }
    if (seq > 2'000) {
      ASSERT_GT(told_up_to, seq);
    }
  }

  BatchLedger backwards(storage, /*cache_bytes=*/1 << 20);
  for (Seq seq = kJobs; seq > kJobs - 2'000; --seq) ASSERT_TRUE(backwards.record({1, seq}));
  EXPECT_EQ(storage.prefetched().size(), told) << "nobody knows what is read next";
}

// Of the dead, who are brought back by the thousand.
TEST(BatchLedgerDead, ThoseThatAreReadInOrderAreReadInLargeSteps) {
  constexpr Seq kJobs = 2'000;
  test::GatedStorage storage;
  BatchLedger ledger(storage, /*cache_bytes=*/1 << 20);
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ledger.put_job({1, seq}, record_of("payload " + std::to_string(seq)), 0);
  }
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    auto state = std::make_shared<JobState>();
    state->attempts = static_cast<std::uint32_t>(seq);
    state->status = JobStatus::dead;
    ledger.bury({1, seq}, {record_of("payload " + std::to_string(seq)), std::move(state)});
  }
  auto [number, changes] = ledger.seal();
  ASSERT_TRUE(BrokerCore::commit(storage, changes, storage::Durability::synced).has_value());

  BatchLedger cold(storage, /*cache_bytes=*/1 << 20);
  const int gets = storage.gets();
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    const auto dead = cold.dead({1, seq});
    ASSERT_TRUE(dead && dead->record) << seq;
    EXPECT_EQ(dead->record->payload, "payload " + std::to_string(seq));
    EXPECT_EQ(dead->state->attempts, seq);
    if (seq % 3 == 0) cold.erase_dead({1, seq}, {});
    EXPECT_EQ(cold.dead({1, seq})->record == nullptr, seq % 3 == 0) << "as it was changed last";
  }
  EXPECT_LE(storage.gets() - gets, 20);
  ASSERT_TRUE(cold.dead({1, kJobs + 1}));
  EXPECT_EQ(cold.dead({1, kJobs + 1})->record, nullptr);
  EXPECT_LE(cold.cached_bytes(), 2U << 20);
}

// Buried by several workers at a time, say. Storage is told of those behind them, too.
TEST(BatchLedgerDead, GroupsThatStandNearlyInOrderAreReadInLargeSteps) {
  constexpr Seq kJobs = 9'600;
  constexpr Seq kGroup = 32;
  test::GatedStorage storage;
  BatchLedger ledger(storage, /*cache_bytes=*/1 << 20);
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ledger.bury({1, seq}, {record_of("payload"), std::make_shared<JobState>()});
  }
  auto [number, changes] = ledger.seal();
  ASSERT_TRUE(BrokerCore::commit(storage, changes, storage::Durability::synced).has_value());

  BatchLedger cold(storage, /*cache_bytes=*/1 << 20);
  const int gets = storage.gets();
  const auto read_group = [&](Seq group) {
    for (Seq place = 1; place <= kGroup; ++place) {
      ASSERT_TRUE(cold.dead({1, group * kGroup + place})->record);
    }
  };
  // Each other one comes before the one in front of it.
  for (Seq group = 0; group < kJobs / kGroup; group += 2) {
    read_group(group + 1);
    read_group(group);
  }
  EXPECT_LE(storage.gets() - gets, 200);
  EXPECT_FALSE(storage.prefetched().empty());
}

TEST_F(BatchLedgerReadAhead, AQueueThatIsReadBackwardsIsNot) {
  for (Seq seq = kJobs; seq > kJobs - 100; --seq) ASSERT_TRUE(cold.record(job(seq)));
  EXPECT_EQ(cold.misses(), 100U);
}

TEST_F(BatchLedgerReadAhead, LeavesChangesThatAreOnTheirWayAlone) {
  cold.erase_job(job(20));
  cold.put_state(job(21), std::make_shared<JobState>(JobState{.attempts = 9}));
  const auto sealed = cold.seal();
  cold.erase_job(job(22));
  for (Seq seq = 1; seq <= 40; ++seq) {
    const bool erased = seq == 20 || seq == 22;
    EXPECT_EQ(*cold.record(job(seq)) == nullptr, erased) << seq;
    const auto state = *cold.state(job(seq));
    EXPECT_EQ(state ? state->attempts : 0, seq == 21 ? 9U : 0U) << seq;
  }
}

TEST_F(BatchLedgerReadAhead, StopsAtTheQueuesEndAndLeavesOutWhatIsDamaged) {
  storage::Batch batch;
  std::string damaged = *storage->get(storage::Keyspace::jobs, storage::job_key(job(30))).value();
  damaged.back() ^= 1;
  batch.put(storage::Keyspace::jobs, storage::job_key(job(30)), damaged);
  batch.put(storage::Keyspace::jobs, storage::job_key({2, kJobs + 1}),
            storage::encode_job(*record_of("of another queue")));
  ASSERT_TRUE(storage->commit(batch, storage::Durability::synced));
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    const auto record = cold.record(job(seq));
    ASSERT_EQ(record.has_value(), seq != 30) << seq;
    if (!record) {
      EXPECT_EQ(record.error().code, Errc::corrupt);
    }
  }
  EXPECT_EQ(*cold.record(job(kJobs + 1)), nullptr);
}

TEST_F(BatchLedgerReadAhead, ADamagedStateIsToldToWhoAsksForIt) {
  storage::Batch batch;
  std::string damaged =
      *storage->get(storage::Keyspace::states, storage::job_key(job(500))).value();
  damaged.back() ^= 1;
  batch.put(storage::Keyspace::states, storage::job_key(job(500)), damaged);
  ASSERT_TRUE(storage->commit(batch, storage::Durability::synced));
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ASSERT_TRUE(cold.record(job(seq))) << seq;
    const auto state = cold.state(job(seq));
    ASSERT_EQ(state.has_value(), seq != 500) << seq;
    if (!state) {
      EXPECT_EQ(state.error().code, Errc::corrupt);
    }
  }
}

TEST_F(BatchLedgerReadAhead, StaysWithinTheCache) {
  BatchLedger small{*storage, /*cache_bytes=*/16 << 10};
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ASSERT_EQ((*small.record(job(seq)))->payload, "payload " + std::to_string(seq));
    EXPECT_LE(small.cached_bytes(), 16U << 10);
  }
}

}  // namespace
}  // namespace reprise
