// A directory of format 3: its first start gives every job the attributes of its record, though the
// index of that format does not know them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <map>
#include <string>
#include <vector>

#include "storage/durable/durable_storage.h"
#include "storage/durable/job_index.h"
#include "storage/durable/salvage.h"
#include "storage/keys.h"
#include "storage/record_frame.h"
#include "storage/records.h"
#include "storage/rocksdb/database.h"
#include "support/hex.h"
#include "support/live_attributes.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using test::from_hex;

// As format 3 wrote it: jobs 1 to 3 of one priority and 4 of another are fresh, 5 has a ttl, 6 is
// scheduled, 7 active.
constexpr std::string_view kIndexVersion1 =
    "010205000104e8070003010101030501e80709030000000000000602e807000039300000000000000702e807020139"
    "300000000000001032547698badcfe9f86010000000000d2d2ec5a";

std::string encode_job_2(const JobRecord& record) {
  RecordWriter out(0, 2);
  out.time(record.pushed_at);
  out.time(record.expires_at);
  out.fixed(record.priority);
  out.fixed(record.byte_size());
  out.enumerator(record.payload_kind);
  out.bytes(record.key);
  out.varint(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    out.bytes(name);
    out.bytes(value);
  }
  const Scheduling& scheduling = record.scheduling;
  out.bytes(scheduling.fairness_key == kDefaultFairnessKey ? "" : scheduling.fairness_key);
  out.varint(scheduling.weight);
  out.varint(scheduling.throttle_keys.size());
  for (const std::string& key : scheduling.throttle_keys) out.bytes(key);
  out.bytes(record.payload);
  return out.finish();
}

// The base, past everything that guards it.
class RawBase {
 public:
  explicit RawBase(const std::string& directory) {
    std::vector<std::string> names = {rocksdb::kDefaultColumnFamilyName};
    for (const Keyspace keyspace : kAllKeyspaces) names.emplace_back(keyspace_name(keyspace));
    names.emplace_back(kIndexFamilyName);
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    const auto status =
        rocksdb::DB::Open(rocksdb::DBOptions(), directory + "/db", families, &handles, &db);
    EXPECT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    for (std::size_t i = 0; i < names.size(); ++i) families_[names[i]] = handles[i];
  }
  ~RawBase() {
    for (const auto& [name, handle] : families_) db_->DestroyColumnFamilyHandle(handle);
  }
  void put(const std::string& family, const std::string& key, const std::string& value) {
    ASSERT_TRUE(db_->Put(rocksdb::WriteOptions(), families_.at(family), key, value).ok());
    ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions(), families_.at(family)).ok());
  }
  std::string get(const std::string& family, const std::string& key) {
    std::string value;
    EXPECT_TRUE(db_->Get(rocksdb::ReadOptions(), families_.at(family), key, &value).ok());
    return value;
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::map<std::string, rocksdb::ColumnFamilyHandle*> families_;
};

class Upgrade : public testing::Test {
 protected:
  void SetUp() override {
    {
      const auto storage = open(path_);
      Batch batch;
      put_queue(batch);
      for (Seq seq = 1; seq <= 7; ++seq) put_job(batch, seq);
      ASSERT_TRUE(storage->commit(batch, Durability::synced));
      ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
      batch.clear();
      put_job(batch, 8);  // in the journal only
      ASSERT_TRUE(storage->commit(batch, Durability::synced));
    }
    RawBase base(path_);
    base.put(kIndexFamilyName, index_key_, from_hex(kIndexVersion1));
    base.put("meta", std::string(kFormatKey), encode_format_version(3));
  }

  static std::unique_ptr<Storage> open(const std::string& path) {
    auto opened = open_durable_storage({.directory = path, .background = false});
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  static void put_queue(Batch& batch) {
    const QueueRecord queue{.number = 1, .name = {.name = "orders"}};
    batch.put(Keyspace::queues, queue_key(queue.name), encode_queue(queue));
  }
  static Scheduling attributes_of(Seq seq) {
    if (seq == 1) return {};
    if (seq == 3) return test::heaviest_attributes();
    return {.fairness_key = seq % 2 == 0 ? "acme" : "zeta",
            .weight = static_cast<std::uint32_t>(seq),
            .throttle_keys = {"api"}};
  }
  void put_job(Batch& batch, Seq seq) {
    JobRecord record{.priority = seq == 4 ? 5U : 1000U,
                     .headers = {{"name", std::string(100, 'h')}},
                     .scheduling = attributes_of(seq),
                     .payload = std::string(100, 'p')};
    if (seq == 5) record.expires_at = Timestamp(Duration(777));
    batch.put(Keyspace::jobs, job_key({1, seq}), encode_job_2(record));
    JobState state;
    state.status = seq == 6 ? JobStatus::scheduled : JobStatus::active;
    state.due = Timestamp(Duration(12345));
    if (seq == 6 || seq == 7) batch.put(Keyspace::states, job_key({1, seq}), encode_state(state));
    expected_[{1, seq}] = record.scheduling;
  }

  const test::TempDirectory parent_;
  const std::string path_ = parent_ / "data";
  const std::string index_key_ = encode_chunk_key({.queue = 1, .number = 0});
  std::map<JobKey, Scheduling> expected_;
};

TEST_F(Upgrade, GivesEveryJobTheAttributesOfItsRecord) {
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(test::live_attributes(*open(path_)), expected_);
  }
}

TEST_F(Upgrade, IsDoneOnceAndForAll) {
  open(path_);
  {
    RawBase base(path_);
    EXPECT_EQ(*decode_format_version(base.get("meta", std::string(kFormatKey))), kFormatVersion);
    EXPECT_EQ(base.get(kIndexFamilyName, index_key_).front(), '\x02');
  }
  {
    const auto storage = open(path_);
    Batch batch;
    batch.erase(Keyspace::jobs, job_key({1, 2}));
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
    ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
  }
  expected_.erase({1, 2});
  EXPECT_EQ(test::live_attributes(*open(path_)), expected_);
}

// Its index is as it is now: it is not even read.
TEST_F(Upgrade, OfFormat4WritesTheFormatAndLeavesTheRest) {
  {
    RawBase base(path_);
    base.put("meta", std::string(kFormatKey), encode_format_version(4));
  }
  open(path_);
  RawBase base(path_);
  EXPECT_EQ(*decode_format_version(base.get("meta", std::string(kFormatKey))), kFormatVersion);
  EXPECT_EQ(base.get(kIndexFamilyName, index_key_), from_hex(kIndexVersion1));
}

// Such a job goes to the dead when it is claimed; it does not keep the others from starting.
TEST_F(Upgrade, LeavesAJobWhoseRecordCannotBeReadAsItIs) {
  RawBase(path_).put("jobs", job_key({1, 2}), "rubbish");
  expected_[{1, 2}] = {};
  EXPECT_EQ(test::live_attributes(*open(path_)), expected_);
}

TEST_F(Upgrade, OfADamagedIndexIsRefusedAndChangesNothing) {
  std::string damaged = from_hex(kIndexVersion1);
  damaged[3] ^= 1;
  RawBase(path_).put(kIndexFamilyName, index_key_, damaged);
  const auto opened = open_durable_storage({.directory = path_, .background = false});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_EQ(*decode_format_version(RawBase(path_).get("meta", std::string(kFormatKey))), 3U);
}

TEST_F(Upgrade, IsNotNeededToSalvage) {
  const std::string copy = parent_ / "copy";
  const auto report = salvage({.from = path_, .to = copy});
  ASSERT_TRUE(report) << report.error().detail;
  EXPECT_FALSE(report->lost_anything()) << testing::PrintToString(report->damage);
  EXPECT_EQ(test::live_attributes(*open(copy)), expected_);
}

}  // namespace
}  // namespace reprise::storage
