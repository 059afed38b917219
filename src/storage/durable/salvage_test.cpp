// Each kind of damage to a data directory, and what is kept. The directory has everything in it:
// jobs in tables and jobs in the journal only, erased ones, states, dead jobs, keys.
#include "storage/durable/salvage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/durable/durable_storage.h"
#include "storage/journal/format.h"
#include "storage/journal/segment.h"
#include "storage/keys.h"
#include "storage/live_jobs.h"
#include "storage/records.h"
#include "support/live_attributes.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

Timestamp at(int seconds) { return Timestamp(std::chrono::seconds(1'700'000'000 + seconds)); }

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_file(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void flip(const fs::path& path, std::size_t offset) {
  std::string bytes = read_file(path);
  bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 0x10);
  write_file(path, bytes);
}

std::map<std::string, std::string> files_in(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.emplace(entry.path().string(), read_file(entry.path()));
  }
  return files;
}

using Content = std::map<std::pair<Keyspace, std::string>, std::string>;

Content content_of(const Storage& storage) {
  Content content;
  for (const Keyspace keyspace : kAllKeyspaces) {
    const auto add = [&](std::string_view key, std::string_view value) {
      if (key != kCheckpointKey) content.emplace(std::pair(keyspace, key), value);
      return true;
    };
    EXPECT_TRUE(storage.scan(keyspace, {}, {}, add));
  }
  return content;
}

class SalvageTest : public ::testing::Test {
 protected:
  static constexpr Seq kJobs = 600;

  // Filled once, copied for each test.
  static void SetUpTestSuite() {
    prepared_ = std::make_unique<test::TempDirectory>();
    fill(*prepared_ / "data");
  }
  static void TearDownTestSuite() { prepared_.reset(); }
  void SetUp() override { fs::copy(*prepared_ / "data", from(), fs::copy_options::recursive); }

  static DurableOptions options(const std::string& path) {
    return {.directory = path,
            .overlay_bytes = 48U << 10,
            .segment_bytes_min = 16384,
            .segment_bytes_max = 16384,
            .background = false};
  }
  static std::unique_ptr<Storage> open(const std::string& path) {
    auto opened = open_durable_storage(options(path));
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }

  static JobRecord job_of(Seq seq) {
    JobRecord record;
    record.pushed_at = at(static_cast<int>(seq));
    record.key = "key-" + std::to_string(seq);
    if (seq % 5 == 0) record.scheduling.fairness_key = "tenant-" + std::to_string(seq % 50);
    if (seq % 8 == 0) record.scheduling.weight = 3;
    if (seq % 13 == 0) record.scheduling.throttle_keys = {"api", "mail"};
    record.payload = std::string(300, 'p') + std::to_string(seq * 2654435761U);
    return record;
  }
  static JobState state_of(JobStatus status, std::uint32_t attempts) {
    JobState state;
    state.status = status;
    state.attempts = attempts;
    state.due = at(99'999);
    return state;
  }

  // A queue's life: pushes; every third job is acked later, every seventh fails, every eleventh
  // dies.
  static void fill(const std::string& path) {
    totals_ = {};
    server_ = {};
    const auto storage = open(path);
    commit(*storage, [&](Batch& batch) {
      for (const QueueNumber number : {1U, 2U}) put_queue(batch, number);
      for (const std::string key : {"api", "mail"}) {
        batch.put(Keyspace::meta, config_key("default", key),
                  encode_config({.ns = "default", .key = key, .value = "on"}));
        batch.put(Keyspace::meta, throttle_key("default", key),
                  encode_throttle({.throttle = {.ns = "default", .key = key, .burst = 7}}));
        put_note(batch, {"worker/" + key, "first"});
      }
    });
    for (Seq seq = 1; seq <= kJobs; ++seq) {
      commit(*storage, [&](Batch& batch) { push(batch, seq); });
      if (seq > 100) commit(*storage, [&](Batch& batch) { work_on(batch, seq - 100); });
      if (seq > 150) commit(*storage, [&](Batch& batch) { retry(batch, seq - 150); });
    }
    filled_ = content_of(*storage);
    ASSERT_TRUE(storage->sync());
  }
  template <class Change>
  static void commit(Storage& storage, const Change& change) {
    Batch batch;
    change(batch);
    for (const auto& [number, totals] : totals_) {
      batch.put(Keyspace::meta, totals_key(number), encode_totals(totals));
    }
    batch.put(Keyspace::meta, kServerKey, encode_server(server_));
    // A sync now and then is as good as one each time: all of it is known to have been synced.
    const bool sync = server_.next_seq % 10 == 0;
    ASSERT_TRUE(storage.commit(batch, sync ? Durability::synced : Durability::buffered));
  }
  static void put_queue(Batch& batch, QueueNumber number) {
    QueueRecord record;
    record.number = number;
    record.name.name = "queue-" + std::to_string(number);
    batch.put(Keyspace::queues, queue_key(record.name), encode_queue(record));
    totals_[number] = {};
    server_.next_queue = std::max(server_.next_queue, number + 1);
  }
  static void put_note(Batch& batch, const Note& note) {
    batch.put(Keyspace::meta, note_key(note.key), encode_note(note));
  }
  static QueueNumber queue_of(Seq seq) { return seq % 4 == 0 ? 2 : 1; }
  static void push(Batch& batch, Seq seq) {
    const JobKey job{queue_of(seq), seq};
    const JobRecord record = job_of(seq);
    batch.put(Keyspace::jobs, job_key(job), encode_job(record));
    batch.put(Keyspace::keys, idempotency_key(job.queue, record.key),
              encode_key_entry({.seq = seq, .expires_at = kNever}));
    totals_[job.queue].pushed += 1;
    totals_[job.queue].live_bytes += record.byte_size();
    server_.next_seq = seq + 1;
    server_.clock = record.pushed_at;
  }
  static void work_on(Batch& batch, Seq seq) {
    const JobKey job{queue_of(seq), seq};
    const std::string key = job_key(job);
    QueueTotals& totals = totals_[job.queue];
    if (seq % 3 == 0 || seq % 11 == 0) {
      batch.erase(Keyspace::jobs, key);
      batch.erase(Keyspace::states, key);
      totals.live_bytes -= job_of(seq).byte_size();
    }
    if (seq % 3 == 0) {
      ++totals.completed;
      if (seq % 15 == 0) {
        put_ended(batch, Keyspace::completed, job, JobStatus::completed);
        ++totals.completed_now;
      }
    } else if (seq % 11 == 0) {
      put_ended(batch, Keyspace::dead, job, JobStatus::dead);
      batch.put(Keyspace::meta, audit_key(seq), encode_audit({.number = seq, .done = 1}));
      ++totals.died;
      ++totals.dead_now;
    } else if (seq % 7 == 0) {
      batch.put(Keyspace::states, key, encode_state(state_of(JobStatus::failed, 1)));
      ++totals.failed;
    }
  }

  static void put_ended(Batch& batch, Keyspace keyspace, JobKey job, JobStatus status) {
    JobState state = state_of(status, 3);
    state.ended_at = at(static_cast<int>(job.seq) + 5);
    const EndedJob ended{.record = std::make_shared<const JobRecord>(job_of(job.seq)),
                         .state = std::make_shared<const JobState>(state)};
    const EndKind kind = status == JobStatus::dead ? EndKind::dead : EndKind::completed;
    batch.put(keyspace, job_key(job), encode_ended(ended));
    batch.put(Keyspace::endings,
              ending_key({.queue = job.queue, .kind = kind, .at = state.ended_at, .seq = job.seq}),
              encode_ending(ending_of(ended)));
  }

  // Every second job that has failed succeeds after all.
  static void retry(Batch& batch, Seq seq) {
    if (seq % 14 != 0 || seq % 3 == 0 || seq % 11 == 0) return;
    const JobKey job{queue_of(seq), seq};
    batch.erase(Keyspace::jobs, job_key(job));
    batch.erase(Keyspace::states, job_key(job));
    totals_[job.queue].live_bytes -= job_of(seq).byte_size();
    ++totals_[job.queue].completed;
  }

  std::string from() const { return directory / "old"; }
  std::string to() const { return directory / "new"; }

  // Salvages, checks what must always hold, and returns the report.
  SalvageReport salvaged() {
    const auto before = files_in(from());
    auto report = salvage({.from = from(), .to = to()});
    EXPECT_TRUE(report) << report.error().detail;
    EXPECT_TRUE(files_in(from()) == before) << "the old directory has changed";
    if (!report) return {};
    const auto storage = open(to());
    kept_ = content_of(*storage);
    check_kept(*storage, *report);
    return *std::move(report);
  }

  // The list of endings is that of the jobs which have ended, no more and no less.
  void check_endings() {
    EXPECT_EQ(count(kept_, Keyspace::endings),
              count(kept_, Keyspace::dead) + count(kept_, Keyspace::completed));
    for (const auto& [where, value] : kept_) {
      if (where.first != Keyspace::endings) continue;
      const auto ending = parse_ending_key(where.second);
      ASSERT_TRUE(ending);
      const Keyspace keyspace =
          ending->kind == EndKind::dead ? Keyspace::dead : Keyspace::completed;
      const auto ended = kept_.find({keyspace, job_key({ending->queue, ending->seq})});
      ASSERT_NE(ended, kept_.end());
      EXPECT_EQ(decode_ended(ended->second)->state->ended_at, ending->at);
    }
  }

  // A start accepts it, every job is one that was there, and the sums add up.
  void check_kept(const Storage& storage, const SalvageReport& report) {
    const auto live = test::live_attributes(storage);
    EXPECT_EQ(live.size(), report.totals().live_kept);
    for (const auto& [job, scheduling] : live) {
      EXPECT_EQ(scheduling, job_of(job.seq).scheduling) << job.seq;
    }
    EXPECT_EQ(count(kept_, Keyspace::jobs), report.totals().live_kept);
    EXPECT_EQ(count(kept_, Keyspace::dead), report.totals().dead_kept);
    std::map<QueueNumber, std::uint64_t> live_bytes;
    std::map<QueueNumber, std::uint64_t> dead;
    Seq highest = 0;
    for (const auto& [where, value] : kept_) {
      const auto& [keyspace, key] = where;
      if (keyspace == Keyspace::jobs) {
        const auto record = decode_job(value);
        EXPECT_TRUE(record);
        live_bytes[parse_job_key(key)->queue] += record->byte_size();
        highest = std::max(highest, parse_job_key(key)->seq);
      } else if (keyspace == Keyspace::states) {
        EXPECT_TRUE(decode_state(value));
        EXPECT_TRUE(kept_.contains({Keyspace::jobs, key})) << "a state without its job";
      } else if (keyspace == Keyspace::dead) {
        EXPECT_TRUE(decode_ended(value));
        EXPECT_FALSE(kept_.contains({Keyspace::jobs, key})) << "dead and alive";
        ++dead[parse_job_key(key)->queue];
      }
    }
    check_endings();
    for (const auto& [where, value] : kept_) {
      if (where.first != Keyspace::queues) continue;
      const QueueNumber number = decode_queue(value)->number;
      const auto totals = decode_totals(kept_.at({Keyspace::meta, totals_key(number)}));
      EXPECT_EQ(totals->live_bytes, live_bytes[number]);
      EXPECT_EQ(totals->dead_now, dead[number]);
      live_bytes.erase(number);
    }
    EXPECT_TRUE(live_bytes.empty()) << "jobs of an unknown queue";
    EXPECT_GT(decode_server(kept_.at({Keyspace::meta, std::string(kServerKey)}))->next_seq,
              highest);
  }
  static std::uint64_t count(const Content& content, Keyspace keyspace) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        content, [&](const auto& entry) { return entry.first.first == keyspace; }));
  }
  void expect_all_kept(const SalvageReport& report) {
    EXPECT_FALSE(report.lost_anything()) << ::testing::PrintToString(report.damage);
    EXPECT_TRUE(kept_ == whole_) << different();
  }
  std::string different() const {
    std::string text;
    const auto name = [](const auto& where) {
      return std::string(keyspace_name(where.first)) + " " + describe_job(where.second) + "\n";
    };
    for (const auto& [where, value] : whole_) {
      const auto found = kept_.find(where);
      if (found == kept_.end()) text += "missing: " + name(where);
      if (found != kept_.end() && found->second != value) text += "changed: " + name(where);
    }
    for (const auto& [where, value] : kept_) {
      if (!whole_.contains(where)) text += "came back: " + name(where);
    }
    return text.substr(0, 2000);
  }
  // Some of the jobs are gone, and the report says how many.
  void expect_losses_told(const SalvageReport& report) {
    EXPECT_TRUE(report.lost_anything());
    EXPECT_FALSE(report.damage.empty());
    const SalvagedQueue totals = report.totals();
    EXPECT_EQ(totals.live_kept + totals.live_lost, count(whole_, Keyspace::jobs))
        << different() << ::testing::PrintToString(report.damage);
    EXPECT_EQ(totals.dead_kept + totals.dead_lost, count(whole_, Keyspace::dead));
    for (const auto& [where, value] : kept_) {
      if (where.first != Keyspace::jobs) continue;
      EXPECT_TRUE(whole_.contains(where)) << "came back: " << describe_job(where.second);
    }
  }

  std::vector<fs::path> tables() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(from() + "/db")) {
      if (entry.path().extension() == ".sst") found.push_back(entry.path());
    }
    std::ranges::sort(found);
    return found;
  }
  // nullopt: it has none.
  static std::optional<std::size_t> place_of_sequence(const fs::path& table) {
    ::rocksdb::SstFileReader reader{::rocksdb::Options()};
    EXPECT_TRUE(reader.Open(table.string()).ok());
    const auto place = reader.GetTableProperties()->external_sst_file_global_seqno_offset;
    return place == 0 ? std::nullopt : std::optional<std::size_t>(place);
  }
  fs::path largest_table() const {
    const auto all = tables();
    return *std::ranges::max_element(all, {}, [](const auto& path) { return fs::file_size(path); });
  }
  fs::path manifest() const {
    for (const auto& entry : fs::directory_iterator(from() + "/db")) {
      if (entry.path().filename().string().starts_with("MANIFEST-")) return entry.path();
    }
    return {};
  }
  // Segments that were begun in this life, in order.
  std::vector<fs::path> segments() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(from() + "/journal")) {
      const auto header = journal::decode_segment_header(read_file(entry.path()));
      const auto number = journal::parse_segment_file_name(entry.path().filename().string());
      if (header && header->number == number) found.push_back(entry.path());
    }
    std::ranges::sort(found);
    return found;
  }
  // The number of the last batch that the base has.
  std::uint64_t covered() const { return covered(from()); }
  static std::uint64_t covered(const std::string& path) {
    const auto bytes = open(path)->get(Keyspace::meta, kCheckpointKey);
    return decode_checkpoint(bytes->value())->covered_batch;
  }
  // Where the batches of a segment stand.
  static std::vector<std::size_t> frames_of(const fs::path& path) {
    const std::string bytes = read_file(path);
    const auto header = journal::decode_segment_header(bytes);
    const std::uint32_t seed = journal::frame_seed(header->directory, header->number);
    std::vector<std::size_t> found;
    std::size_t offset = journal::kSegmentHeaderBytes;
    while (const auto frame = journal::decode_frame(std::string_view(bytes).substr(offset), seed)) {
      if (frame->header.kind != journal::FrameKind::batch) break;
      found.push_back(offset);
      offset += journal::frame_bytes(frame->header.body_bytes);
    }
    return found;
  }

  const test::TempDirectory directory;
  Content whole_ = filled_;  // what the directory holds
  Content kept_;             // what was salvaged

  static inline std::unique_ptr<test::TempDirectory> prepared_;
  static inline std::map<QueueNumber, QueueTotals> totals_;
  static inline ServerState server_;
  static inline Content filled_;
};

TEST_F(SalvageTest, TheDirectoryIsWorthATest) {
  EXPECT_GT(tables().size(), 10U);
  EXPECT_GE(segments().size(), 3U);
  EXPECT_GT(count(whole_, Keyspace::states), 10U);
  EXPECT_GT(count(whole_, Keyspace::dead), 10U);
}

TEST_F(SalvageTest, AWholeDirectoryIsCopiedAsItIs) {
  const SalvageReport report = salvaged();
  expect_all_kept(report);
  EXPECT_TRUE(report.damage.empty()) << ::testing::PrintToString(report.damage);
  ASSERT_EQ(report.queues.size(), 2U);
  EXPECT_EQ(report.queues[0].name, (QueueName{.name = "queue-1"}));
}

TEST_F(SalvageTest, WhatWasSalvagedOnceIsWhole) {
  flip(largest_table(), fs::file_size(largest_table()) / 2);
  EXPECT_TRUE(salvaged().lost_anything());
  const auto again = salvage({.from = to(), .to = directory / "again"});
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->lost_anything()) << ::testing::PrintToString(again->damage);
  EXPECT_TRUE(content_of(*open(directory / "again")) == kept_);
}

TEST_F(SalvageTest, AnUnfinishedWriteIsLeftOutAsByAStart) {
  const fs::path last = segments().back();
  std::string bytes = read_file(last);
  const auto frames = frames_of(last);
  ASSERT_FALSE(frames.empty());
  // Behind the last frame the mark of another one, and nothing of the rest.
  const std::string mark = bytes.substr(frames.back() + 4, 4);
  const std::size_t end = bytes.find_last_not_of('\0') + 1;
  bytes.replace((end + 7) / 8 * 8 + 4, 4, mark);
  write_file(last, bytes);
  expect_all_kept(salvaged());
}

TEST_F(SalvageTest, AFlippedBlockCostsItsJobsAndNoOthers) {
  for (const double share : {0.1, 0.5, 0.9}) {
    const fs::path table = largest_table();
    const std::string whole = read_file(table);
    flip(table, static_cast<std::size_t>(static_cast<double>(whole.size()) * share));
    const SalvageReport report = salvaged();
    expect_losses_told(report);
    EXPECT_THAT(report.damage, Contains(HasSubstr(table.filename().string())));
    EXPECT_GT(report.totals().live_kept, count(whole_, Keyspace::jobs) / 2)
        << ::testing::PrintToString(report.damage) << whole.size() << table;
    write_file(table, whole);
    fs::remove_all(to());
  }
}

// RocksDB's own checks end the process, so each place that is not ready for bad bytes would show.
TEST_F(SalvageTest, FlippedBitsAnywhereAreSurvivedAndTold) {
  const char* const more = std::getenv("SALVAGE_FLIPS");
  const int rounds = more == nullptr ? 40 : std::atoi(more);
  std::mt19937_64 random(20260131);
  std::vector<fs::path> files;
  for (const auto& [path, bytes] : files_in(from())) {
    if (!bytes.empty()) files.emplace_back(path);
  }
  for (int round = 0; round < rounds; ++round) {
    const fs::path& file = files[random() % files.size()];
    const std::string whole = read_file(file);
    const std::size_t place = random() % whole.size();
    flip(file, place);
    const SalvageReport report = salvaged();
    if (!report.lost_anything()) {
      EXPECT_TRUE(kept_ == whole_) << file << " at " << place << "\n" << different();
    }
    write_file(file, whole);
    fs::remove_all(to());
  }
}

// The first block of a table has its own way to be lost in silence.
TEST_F(SalvageTest, ADamagedFirstBlockOfAnyTableIsTold) {
  for (const fs::path& table : tables()) {
    const std::string whole = read_file(table);
    flip(table, 0);
    const SalvageReport report = salvaged();
    if (!report.lost_anything()) {
      EXPECT_TRUE(kept_ == whole_) << table << "\n" << different();
    }
    write_file(table, whole);
    fs::remove_all(to());
  }
}

// RocksDB leaves these eight bytes of a table that was ingested out of its checksums.
TEST_F(SalvageTest, AChangedSequenceNumberOfATableIsTold) {
  std::size_t changed = 0;
  for (const fs::path& table : tables()) {
    const auto place = place_of_sequence(table);
    if (!place) continue;
    const std::string whole = read_file(table);
    flip(table, *place + changed++ % 8);
    const SalvageReport report = salvaged();
    EXPECT_THAT(report.damage, Contains(HasSubstr(table.filename().string())));
    EXPECT_TRUE(report.lost_anything() || kept_ == whole_) << table << "\n" << different();
    const auto refused = open_durable_storage(options(from()));
    ASSERT_FALSE(refused) << table;
    EXPECT_THAT(refused.error().detail, HasSubstr(from()));
    write_file(table, whole);
    fs::remove_all(to());
  }
  EXPECT_GT(changed, 10U);
}

TEST_F(SalvageTest, AMissingTableCostsItsJobs) {
  const fs::path table = largest_table();
  fs::remove(table);
  const SalvageReport report = salvaged();
  expect_losses_told(report);
  EXPECT_THAT(report.damage, Contains(HasSubstr(table.filename().string())));
}

TEST_F(SalvageTest, WithoutCurrentNothingIsLost) {
  fs::remove(from() + "/db/CURRENT");
  const SalvageReport report = salvaged();
  expect_all_kept(report);
  EXPECT_THAT(report.damage, Contains(HasSubstr("CURRENT")));
}

TEST_F(SalvageTest, AGarbledCurrentLosesNothing) {
  write_file(from() + "/db/CURRENT", "MANIFEST-999999\n");
  expect_all_kept(salvaged());
}

TEST_F(SalvageTest, WithoutAManifestTheTablesTellTheStory) {
  write_file(manifest(), std::string(5000, 'm'));
  const SalvageReport report = salvaged();
  expect_all_kept(report);
  EXPECT_THAT(report.damage, Contains(HasSubstr("MANIFEST-")));
}

TEST_F(SalvageTest, AFlippedBitInTheManifestIsNoReasonToLoseAnything) {
  flip(manifest(), fs::file_size(manifest()) / 2);
  expect_all_kept(salvaged());
}

// A server that ends while it writes a table leaves one, and the manifest would tell.
TEST_F(SalvageTest, WithoutAManifestAnEmptyTableIsNoLoss) {
  fs::remove(manifest());
  write_file(from() + "/db/999998.sst", "");
  expect_all_kept(salvaged());
}

TEST_F(SalvageTest, WithoutAManifestAMissingTableShowsInTheCounts) {
  fs::remove(manifest());
  fs::remove(largest_table());
  const SalvageReport report = salvaged();
  EXPECT_TRUE(report.lost_anything());
  EXPECT_GT(report.totals().live_lost, 0U);
}

TEST_F(SalvageTest, ADamagedFrameCostsItsBatch) {
  const std::uint64_t behind = covered();
  for (const fs::path& segment : segments()) {
    const auto header = journal::decode_segment_header(read_file(segment));
    const auto frames = frames_of(segment);
    if (header->first_batch <= behind || frames.size() < 5) continue;
    const std::string whole = read_file(segment);
    flip(segment, frames[2] + journal::kFrameHeaderBytes + 5);
    const SalvageReport report = salvaged();
    EXPECT_EQ(report.batches_lost, 1U);
    EXPECT_TRUE(report.lost_anything());
    EXPECT_THAT(report.damage, Contains(HasSubstr(segment.filename().string())));
    const std::uint64_t differs =
        count(whole_, Keyspace::jobs) -
        std::min(count(whole_, Keyspace::jobs), report.totals().live_kept);
    EXPECT_LE(differs, 1U) << different();
    EXPECT_GE(report.totals().live_lost, differs);
    return;
  }
  FAIL() << "no segment is behind the base";
}

// A start does not pass it, so somebody will ask why.
TEST_F(SalvageTest, DamageOfBatchesThatTheBaseHasIsTold) {
  const std::string copy = directory / "copy";
  fs::copy(from(), copy, fs::copy_options::recursive);
  const std::uint64_t behind = covered(copy);  // an opened one has no use for the segment any more
  // The first one that a start has to read holds both; those before it may be gone.
  std::vector<fs::path> all = segments();
  const auto begins_behind = [&](const fs::path& path) {
    return journal::decode_segment_header(read_file(path))->first_batch > behind;
  };
  const auto first = std::prev(std::ranges::find_if(all, begins_behind));
  const fs::path segment = *first;
  ASSERT_LT(journal::decode_segment_header(read_file(segment))->first_batch, behind);
  for (auto before = all.begin(); before != first; ++before) fs::remove(*before);
  flip(segment, frames_of(segment).front() + journal::kFrameHeaderBytes + 5);
  ASSERT_FALSE(open_durable_storage(options(from())));
  const SalvageReport report = salvaged();
  EXPECT_THAT(report.damage, Contains(AllOf(HasSubstr(segment.filename().string()),
                                            HasSubstr("nothing is lost by that"))));
  EXPECT_EQ(report.batches_lost, 0U);
  EXPECT_FALSE(report.lost_anything());
}

// There is no batch behind them that would show that they are missing.
TEST_F(SalvageTest, DamageOfTheLastBatchesIsToldThoughTheBaseHasThem) {
  ASSERT_TRUE(open(from())->backup(directory / "backup"));  // the base has everything now
  const auto all = segments();
  const auto last = std::ranges::find_if(
      all.rbegin(), all.rend(), [](const auto& segment) { return !frames_of(segment).empty(); });
  ASSERT_NE(last, all.rend()) << "no batch is in the journal";
  for (const std::size_t frame : frames_of(*last)) {
    flip(*last, frame + journal::kFrameHeaderBytes + 5);
  }
  const SalvageReport report = salvaged();
  EXPECT_THAT(report.damage, Contains(AllOf(HasSubstr(last->filename().string()),
                                            HasSubstr("nothing is lost by that"))));
  EXPECT_EQ(report.batches_lost, 0U);
  EXPECT_FALSE(report.lost_anything());
}

TEST_F(SalvageTest, ADamagedHeaderLosesNothing) {
  std::size_t tried = 0;
  for (const fs::path& segment : segments()) {
    if (frames_of(segment).empty()) continue;
    ++tried;
    const std::string whole = read_file(segment);
    write_file(segment, std::string(journal::kSegmentHeaderBytes, 'h') +
                            whole.substr(journal::kSegmentHeaderBytes));
    expect_all_kept(salvaged());
    write_file(segment, whole);
    fs::remove_all(to());
  }
  EXPECT_GE(tried, 2U);
}

TEST_F(SalvageTest, AMissingSegmentCostsItsBatches) {
  const std::uint64_t behind = covered();
  for (const fs::path& segment : segments()) {
    const auto header = journal::decode_segment_header(read_file(segment));
    const auto frames = frames_of(segment);
    if (header->first_batch <= behind || frames.empty()) continue;
    fs::remove(segment);
    const SalvageReport report = salvaged();
    EXPECT_EQ(report.batches_lost, frames.size());
    EXPECT_THAT(report.damage, Contains(HasSubstr(segment.filename().string())));
    return;
  }
  FAIL() << "no segment is behind the base";
}

TEST_F(SalvageTest, WithoutAJournalTheBaseIsKept) {
  fs::remove_all(from() + "/journal");
  const SalvageReport report = salvaged();
  EXPECT_TRUE(report.lost_anything());
  EXPECT_GT(report.totals().live_kept, count(whole_, Keyspace::jobs) / 2);
}

TEST_F(SalvageTest, WithoutABaseTheJournalIsKept) {
  fs::remove_all(from() + "/db");
  const SalvageReport report = salvaged();
  EXPECT_TRUE(report.lost_anything());
  EXPECT_GT(report.totals().live_kept, 0U);
  // The queues' records were in the base, and are made up.
  EXPECT_THAT(report.queues.front().name.name, HasSubstr("recovered-"));
  EXPECT_TRUE(report.queues.front().recovered);
}

TEST_F(SalvageTest, NothingAtAllIsAnError) {
  fs::remove_all(from() + "/db");
  for (const fs::path& segment : segments()) write_file(segment, std::string(16384, '?'));
  const auto nothing = salvage({.from = from(), .to = to()});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Errc::corrupt);
  EXPECT_THAT(nothing.error().detail, HasSubstr("nothing can be read"));
  EXPECT_FALSE(fs::exists(to()));
  fs::remove_all(from() + "/journal");
  EXPECT_EQ(salvage({.from = from(), .to = to()}).error().code, Errc::invalid_field);
}

TEST_F(SalvageTest, RecordsThatDoNotBelongTogetherAreLeftOut) {
  {
    const auto storage = open(from());
    Batch batch;
    std::string damaged = encode_job(job_of(700));
    damaged[40] ^= 1;
    batch.put(Keyspace::jobs, job_key({1, 700}), damaged);
    batch.put(Keyspace::keys, idempotency_key(1, "key-700"),
              encode_key_entry({.seq = 700, .expires_at = kNever}));
    batch.put(Keyspace::states, job_key({1, 701}), encode_state(state_of(JobStatus::failed, 1)));
    batch.put(Keyspace::jobs, job_key({1, 702}), encode_job(job_of(702)));
    batch.put(Keyspace::states, job_key({1, 702}), "no state");
    batch.put(Keyspace::jobs, job_key({9, 703}), encode_job(job_of(703)));
    batch.put(Keyspace::dead, job_key({9, 704}), "no dead job");
    batch.put(Keyspace::jobs, "not a key of a job", encode_job(job_of(705)));
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
  }
  const SalvageReport report = salvaged();
  EXPECT_TRUE(report.lost_anything());
  ASSERT_EQ(report.queues.size(), 3U);
  const SalvagedQueue& first = report.queues[0];
  EXPECT_EQ(first.live_lost, 2U);
  EXPECT_EQ(first.live_reset, 1U);
  const SalvagedQueue& made = report.queues[2];
  EXPECT_EQ(made.name.name, "recovered-9");
  EXPECT_EQ(made.live_kept, 1U);
  EXPECT_EQ(made.dead_lost, 1U);
  EXPECT_FALSE(kept_.contains({Keyspace::keys, idempotency_key(1, "key-700")}));
  EXPECT_TRUE(kept_.contains({Keyspace::jobs, job_key({1, 702})}));
  EXPECT_FALSE(kept_.contains({Keyspace::states, job_key({1, 702})}));
}

class SalvageOfADeletedQueue : public SalvageTest {
 protected:
  void SetUp() override {
    SalvageTest::SetUp();
    const auto storage = open(from());
    Batch batch;
    batch.erase(Keyspace::queues, queue_key({.name = "queue-2"}));
    batch.erase(Keyspace::meta, totals_key(2));
    for (const Keyspace keyspace :
         {Keyspace::jobs, Keyspace::states, Keyspace::dead, Keyspace::keys}) {
      batch.erase_range(keyspace, queue_begin(2), queue_end(2));
    }
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
    // Enough to bring it into the base.
    for (Seq seq = 2001; seq < 2400; ++seq) {
      Batch more;
      more.put(Keyspace::jobs, job_key({1, seq}), encode_job(job_of(seq)));
      ASSERT_TRUE(storage->commit(more, Durability::synced));
    }
    whole_ = content_of(*storage);
  }
};

TEST_F(SalvageOfADeletedQueue, ItStaysDeleted) { EXPECT_EQ(salvaged().queues.size(), 1U); }

TEST_F(SalvageOfADeletedQueue, ItStaysDeletedWithoutAManifest) {
  fs::remove(manifest());
  EXPECT_EQ(salvaged().queues.size(), 1U) << different();
}

class SalvageOfNotes : public SalvageTest {
 protected:
  // One is written again, one is erased, one is erased and comes back; each lot in other tables.
  void SetUp() override {
    SalvageTest::SetUp();
    const auto storage = open(from());
    Batch batch;
    put_note(batch, {"worker/api", "second"});
    put_note(batch, {"item/back", "first"});
    batch.erase(Keyspace::meta, note_key("worker/mail"));
    bring_into_base(*storage, batch, 2001);
    Batch erased;
    erased.erase(Keyspace::meta, note_key("item/back"));
    bring_into_base(*storage, erased, 3001);
    Batch again;
    put_note(again, {"item/back", "second"});
    bring_into_base(*storage, again, 4001);
    whole_ = content_of(*storage);
  }
  static void bring_into_base(Storage& storage, const Batch& batch, Seq seq) {
    ASSERT_TRUE(storage.commit(batch, Durability::synced));
    for (const Seq end = seq + 400; seq < end; ++seq) {
      Batch more;
      more.put(Keyspace::jobs, job_key({1, seq}), encode_job(job_of(seq)));
      ASSERT_TRUE(storage.commit(more, Durability::synced));
    }
  }
  std::map<std::string, std::string> notes() const {
    std::map<std::string, std::string> found;
    for (const auto& [where, value] : kept_) {
      if (where.first != Keyspace::meta || !where.second.starts_with(kNotePrefix)) continue;
      const auto note = decode_note(value);
      EXPECT_TRUE(note) << where.second;
      if (note) found.emplace(note->key, note->value);
    }
    return found;
  }
  const std::map<std::string, std::string> expected_{{"item/back", "second"},
                                                     {"worker/api", "second"}};
};

TEST_F(SalvageOfNotes, TheLatestAreKept) {
  salvaged();
  EXPECT_EQ(notes(), expected_);
}

TEST_F(SalvageOfNotes, TheLatestAreKeptWithoutAManifest) {
  fs::remove(manifest());
  salvaged();
  EXPECT_EQ(notes(), expected_);
}

TEST_F(SalvageOfNotes, OneThatIsDamagedIsLeftOut) {
  {
    const auto storage = open(from());
    Batch batch;
    std::string damaged = encode_note({"worker/bad", "value"});
    damaged[10] ^= 1;
    batch.put(Keyspace::meta, note_key("worker/bad"), damaged);
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
  }
  salvaged();
  EXPECT_EQ(notes(), expected_);
}

// RocksDB 7.8 crashes on a table that cannot be opened beside one with an erased range.
TEST_F(SalvageOfADeletedQueue, ItsJobsStayDeletedWhicheverTableIsMissing) {
  const auto all = tables();
  for (std::size_t i = 0; i < all.size(); i += 5) {
    const std::string whole = read_file(all[i]);
    fs::remove(all[i]);
    for (const SalvagedQueue& queue : salvaged().queues) {
      EXPECT_TRUE(queue.number == 1 || queue.live_kept == 0) << all[i] << "\n" << different();
    }
    write_file(all[i], whole);
    fs::remove_all(to());
  }
}

TEST_F(SalvageTest, ADirectoryInUseIsRefused) {
  const auto storage = open(from());
  const auto refused = salvage({.from = from(), .to = to()});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io);
  EXPECT_THAT(refused.error().detail, HasSubstr("in use"));
  EXPECT_FALSE(fs::exists(to()));
}

TEST_F(SalvageTest, TheNewDirectoryMustBeEmptyAndElsewhere) {
  const auto code = [&](const std::string& source, const std::string& target) {
    return salvage({.from = source, .to = target}).error().code;
  };
  EXPECT_EQ(code(from(), from()), Errc::invalid_field);
  EXPECT_EQ(code(from(), from() + "/new"), Errc::invalid_field);
  EXPECT_EQ(code(from(), directory.path()), Errc::invalid_field);
  EXPECT_EQ(code(directory / "absent", to()), Errc::invalid_field);
  EXPECT_EQ(code(directory.path(), to()), Errc::invalid_field);
  fs::create_directory(to());
  expect_all_kept(salvaged());
}

}  // namespace
}  // namespace reprise::storage
