// Every file of a small data directory on the real disk, damaged in every way: opening it names a
// file, or everything is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/job.h"
#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "support/files.h"
#include "support/seeds.h"
#include "support/storage_contents.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using test::Contents;
using test::read_file;
using test::write_file;
using testing::HasSubstr;
namespace fs = std::filesystem;

DurableOptions small(const std::string& directory) {
  return {.directory = directory,
          .block_cache_bytes = 1U << 20,
          .segment_bytes_min = 8192,
          .segment_bytes_max = 8192,
          .background = false};
}

// Jobs of a few queues: checkpoints that change what others before them wrote, one of them in the
// same life as the journal's tail, so that RocksDB's manifest ends with it; and that tail has two
// segments.
class DirectoryMaker {
 public:
  explicit DirectoryMaker(const std::string& path) : path_(path) {
    open();
    push_some(20);
    write_out();
    push_some(20);
    open();
    push_some(5);
    write_out();
    push_some(40);
    storage_.reset();
  }
  const Contents& contents() const { return contents_; }

 private:
  void open() {
    storage_.reset();
    auto opened = open_durable_storage(small(path_));
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }
  void write_out() { ASSERT_TRUE(storage_->reclaim(Keyspace::dead, "x", "y")); }
  void push_some(int jobs) {
    for (int i = 0; i < jobs; ++i) {
      ++seq_;
      const QueueNumber queue = 1 + seq_ % 3;
      Batch batch;
      batch.put(Keyspace::queues, "ns\0queue " + std::to_string(queue), "a queue");
      JobRecord record;
      record.payload = "payload of job " + std::to_string(seq_ * 0x9E3779B97F4A7C15);
      batch.put(Keyspace::jobs, job_key({queue, seq_}), encode_job(record));
      batch.put(Keyspace::keys, idempotency_key(queue, std::to_string(seq_)), "entry");
      if (seq_ % 2 == 0) {
        batch.put(Keyspace::states, job_key({queue, seq_}),
                  encode_state({.status = JobStatus::scheduled}));
      }
      if (seq_ > 6) {
        const JobKey old{.queue = static_cast<QueueNumber>(1 + (seq_ - 6) % 3), .seq = seq_ - 6};
        batch.erase(Keyspace::jobs, job_key(old));
        batch.erase(Keyspace::states, job_key(old));
      }
      if (seq_ == 30) batch.erase_range(Keyspace::keys, queue_begin(2), queue_end(2));
      ASSERT_TRUE(storage_->commit(batch, Durability::synced));
      test::apply(batch, contents_);
    }
  }

  const std::string path_;
  std::unique_ptr<Storage> storage_;
  Seq seq_ = 0;
  Contents contents_;
};

class Damage : public testing::Test {
 protected:
  void SetUp() override { fs::copy(original_, pristine_, fs::copy_options::recursive); }

  // RocksDB's diary and notes to itself, and our lock: nothing of it is needed.
  static bool is_disposable(const fs::path& file) {
    const std::string name = file.filename();
    return name.starts_with("LOG") || name == "LOCK" || name == "IDENTITY" ||
           name.starts_with("OPTIONS");
  }
  // By their path in the directory.
  static const std::vector<fs::path>& files() {
    static std::vector<fs::path> found;
    if (!found.empty()) return found;
    for (const fs::path& file : test::files_below(original_)) {
      found.push_back(fs::relative(file, original_));
    }
    return found;
  }

  // Opening changes a directory, so every try gets its own. What does not change is linked.
  void restore(const fs::path& damaged) {
    fs::remove_all(path_);
    fs::create_directories(path_);
    for (const fs::path& file : files()) {
      fs::create_directories((path_ / file).parent_path());
      if (file == damaged || is_disposable(file)) continue;
      // Segments are written in place.
      if (file.extension() == ".sst") {
        fs::create_hard_link(pristine_ / file, path_ / file);
      } else {
        fs::copy_file(pristine_ / file, path_ / file);
      }
    }
    fs::create_directories(path_ / "checkpoint");
  }
  void expect_named_or_all(const fs::path& file, const std::optional<std::string>& content) {
    restore(file);
    if (content) write_file(path_ / file, *content);
    const auto opened = open_durable_storage(small(path_));
    if (!opened) {
      ++refused_;
      ASSERT_THAT(opened.error().detail, HasSubstr(path_.string()));
      ASSERT_TRUE(is_named(file, opened.error().detail)) << opened.error().detail;
      ASSERT_FALSE(is_disposable(file)) << opened.error().detail;
      expect_nothing_lost(file);
      return;
    }
    ++opened_;
    const auto found = test::read_contents(**opened);
    if (!found && is_footer(file, content)) return;
    ASSERT_TRUE(found) << found.error().detail;
    ASSERT_EQ(test::difference(expected(), *found), "");
    for (const auto& [keyspace, pairs] : expected()) {
      for (const auto& [key, value] : pairs) {
        const auto got = (*opened)->get(keyspace, key);
        ASSERT_TRUE(got) << got.error().detail;
        ASSERT_EQ(*got, value);
      }
    }
  }
  // Where nothing tells which file there was, its directory is named: a manifest without anything
  // in it leaves nothing of the base, one that has lost its end is an older one whose journal is
  // gone, and a segment that is gone, or has lost its header, leaves a gap.
  bool is_named(const fs::path& file, const std::string& text) const {
    const auto says = [&](const std::string& words) {
      return text.find(words) != std::string::npos;
    };
    const std::string name = file.filename();
    if (says(name)) return true;
    const bool is_manifest = name.starts_with("MANIFEST-");
    if (is_manifest && says("db is missing")) return true;
    return (is_manifest || file.extension() == ".seg") && says("journal is damaged: ");
  }
  // No checksum covers the last bytes of a table file. If one of them makes its blocks unreadable,
  // that is noticed when they are read, at the latest.
  bool is_footer(const fs::path& file, const std::optional<std::string>& content) const {
    constexpr std::size_t kFooterBytes = 53;
    if (!content || file.extension() != ".sst") return false;
    const std::string whole = read_file(pristine_ / file);
    return content->size() == whole.size() && content->substr(0, whole.size() - kFooterBytes) ==
                                                  whole.substr(0, whole.size() - kFooterBytes);
  }
  // A start that is refused takes nothing away that a repair could need.
  void expect_nothing_lost(const fs::path& damaged) {
    for (const fs::path& file : files()) {
      if (file == damaged || (file.extension() != ".sst" && file.extension() != ".seg")) continue;
      ASSERT_TRUE(fs::exists(path_ / file)) << "the refused start deleted " << file;
    }
  }

  static const Contents& expected() { return made_->contents(); }

  static void SetUpTestSuite() {
    original_ = fs::path(directory_.path()) / "original";
    made_ = std::make_unique<DirectoryMaker>(original_);
    std::set<std::string> kinds;
    for (const fs::path& file : files()) kinds.insert(file.extension());
    ASSERT_TRUE(kinds.contains(".sst") && kinds.contains(".seg"));
  }
  static void TearDownTestSuite() { made_.reset(); }

  static inline const test::TempDirectory directory_;
  static inline fs::path original_;
  static inline std::unique_ptr<DirectoryMaker> made_;

  const test::TempDirectory work_;
  const fs::path pristine_ = fs::path(work_.path()) / "pristine";
  const fs::path path_ = fs::path(work_.path()) / "data";
  int refused_ = 0;
  int opened_ = 0;
};

TEST_F(Damage, TheDirectoryItselfOpens) {
  expect_named_or_all("LOCK", "");
  EXPECT_EQ(opened_, 1);
  for (const fs::path& file : files()) {
    RecordProperty(file.string(), std::to_string(fs::file_size(original_ / file)));
  }
}

// How far apart the bytes are that are tried: all of them would take minutes. (The journal's
// segments have a test of their own, which does try them all.)
std::size_t step_for(const fs::path& file, std::size_t bytes) {
  std::size_t step = 1;
  if (file.extension() == ".sst") step = 29;
  if (file.extension() == ".seg") step = 97;
  if (file.filename().string().starts_with("MANIFEST")) step = 5;
  if (bytes > 32'000) step = bytes / 16;
  return std::max<std::size_t>(1, step / test::seed_count(1));
}

TEST_F(Damage, AFlippedBitAnywhere) {
  for (const fs::path& file : files()) {
    const std::string whole = read_file(pristine_ / file);
    for (std::size_t at = 0; at < whole.size(); at += step_for(file, whole.size())) {
      SCOPED_TRACE(file.string() + " byte " + std::to_string(at));
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      ASSERT_NO_FATAL_FAILURE(expect_named_or_all(file, flipped));
    }
  }
  EXPECT_GT(refused_, 100);
}

TEST_F(Damage, AFileThatIsCutShort) {
  for (const fs::path& file : files()) {
    const std::string whole = read_file(pristine_ / file);
    for (std::size_t length = 0; length < whole.size();
         length += std::max<std::size_t>(1, std::min<std::size_t>(4096, whole.size() / 16))) {
      SCOPED_TRACE(file.string() + " to " + std::to_string(length));
      ASSERT_NO_FATAL_FAILURE(expect_named_or_all(file, whole.substr(0, length)));
    }
    if (whole.empty()) continue;
    ASSERT_NO_FATAL_FAILURE(expect_named_or_all(file, whole.substr(0, whole.size() - 1)));
  }
}

TEST_F(Damage, AZeroedBlock) {
  for (const fs::path& file : files()) {
    const std::string whole = read_file(pristine_ / file);
    for (std::size_t at = 0; at < whole.size(); at += 4096) {
      SCOPED_TRACE(file.string() + " block at " + std::to_string(at));
      std::string zeroed = whole;
      const std::size_t bytes = std::min<std::size_t>(4096, whole.size() - at);
      zeroed.replace(at, bytes, bytes, '\0');
      ASSERT_NO_FATAL_FAILURE(expect_named_or_all(file, zeroed));
    }
  }
}

TEST_F(Damage, AMissingFile) {
  for (const fs::path& file : files()) {
    SCOPED_TRACE(file.string());
    ASSERT_NO_FATAL_FAILURE(expect_named_or_all(file, std::nullopt));
  }
}

TEST_F(Damage, AMissingDirectory) {
  for (const char* name : {"db", "journal"}) {
    restore({});
    fs::remove_all(path_ / name);
    const auto opened = open_durable_storage(small(path_));
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, Errc::corrupt);
    EXPECT_THAT(opened.error().detail, HasSubstr(path_.string()));
  }
}

// Right after a checkpoint the journal holds nothing, but its numbers say that something was there.
TEST_F(Damage, AMissingBaseIsNoticedThoughTheJournalIsEmpty) {
  restore({});
  const fs::path copy = fs::path(work_.path()) / "copy";
  {
    const auto storage = open_durable_storage(small(path_));
    ASSERT_TRUE(storage);
    ASSERT_TRUE((*storage)->backup(copy));
  }
  fs::remove_all(copy / "db");
  const auto opened = open_durable_storage(small(copy));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace reprise::storage
