// Journal, overlays and base read as one: the same random commits on a storage and on plain maps,
// with checkpoints, reopenings and snapshots that are held across them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "support/memory_disk.h"
#include "support/seeds.h"
#include "support/storage_contents.h"

namespace reprise::storage {
namespace {

using test::Contents;
using Pairs = std::vector<std::pair<std::string, std::string>>;

class RandomReads {
 public:
  explicit RandomReads(std::uint64_t seed) : random_(seed) { open(); }

  void run() {
    for (int step = 0; step < 150; ++step) {
      ASSERT_NO_FATAL_FAILURE(commit());
      if (random_.below(8) == 0) snapshots_.push_back({storage_->snapshot(), model_});
      if (!snapshots_.empty() && random_.below(10) == 0) {
        snapshots_.erase(snapshots_.begin() +
                         static_cast<std::ptrdiff_t>(random_.below(snapshots_.size())));
      }
      if (random_.below(40) == 0) {
        const std::string begin = key();
        ASSERT_TRUE(storage_->reclaim(keyspace(), begin, key()));
      }
      if (random_.below(60) == 0) {
        snapshots_.clear();
        ASSERT_TRUE(storage_->sync());
        open();
      }
      ASSERT_NO_FATAL_FAILURE(compare());
    }
    for (const auto& held : snapshots_) ASSERT_NO_FATAL_FAILURE(compare_whole(held));
    const auto whole = test::read_contents(*storage_);
    ASSERT_TRUE(whole);
    ASSERT_EQ(test::difference(model_, *whole), "");
  }

 private:
  struct Held {
    std::unique_ptr<Storage::Snapshot> snapshot;
    Contents contents;
  };

  void open() {
    storage_.reset();
    auto opened = open_durable_storage({.directory = "/data",
                                        .block_cache_bytes = 1U << 20,
                                        .overlay_bytes = 1500,
                                        .journal_bytes = 20'000,
                                        .segment_bytes_min = 2048,
                                        .segment_bytes_max = 8192,
                                        .env = &disk_.env(),
                                        .background = false});
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }

  Keyspace keyspace() { return kAllKeyspaces[random_.below(kAllKeyspaces.size())]; }
  // Jobs' keys, mostly; the highest seq rises, so that there are new ones all the time.
  std::string key() {
    switch (random_.below(8)) {
      case 0:
        return std::string(1 + random_.below(3), static_cast<char>(random_.below(4)));
      case 1:
        return job_key({.queue = queue(), .seq = ++seq_});
      default:
        return job_key({.queue = queue(), .seq = seq_ - random_.below(std::min<Seq>(seq_, 12))});
    }
  }
  QueueNumber queue() { return static_cast<QueueNumber>(1 + random_.below(3)); }

  void commit() {
    Batch batch;
    for (std::uint64_t i = random_.below(8); i > 0; --i) {
      const Keyspace in = keyspace();
      switch (random_.below(12)) {
        case 0: {
          const QueueNumber gone = queue();
          batch.erase_range(in, queue_begin(gone), queue_end(gone));
          break;
        }
        case 1: {
          const std::string begin = key();
          batch.erase_range(in, begin, key());
          break;
        }
        case 2:
        case 3:
        case 4:
          batch.erase(in, key());
          break;
        default:
          batch.put(in, key(),
                    std::string(random_.below(100), static_cast<char>(random_.next_u64())));
      }
    }
    test::apply(batch, model_);
    const auto status =
        storage_->commit(batch, random_.below(2) == 0 ? Durability::synced : Durability::buffered);
    ASSERT_TRUE(status) << status.error().detail;
  }

  // Some keys and a range, now and in one of the snapshots.
  void compare() {
    const Keyspace in = keyspace();
    const std::string name = key();
    const std::string begin = random_.below(4) == 0 ? std::string() : key();
    const std::string end = random_.below(4) == 0 ? std::string() : key();
    const auto got = storage_->get(in, name);
    ASSERT_TRUE(got) << got.error().detail;
    ASSERT_EQ(*got, value_in(model_, in, name));
    Pairs scanned;
    ASSERT_TRUE(storage_->scan(in, begin, end, [&](auto key, auto value) {
      if (!is_internal(in, key)) scanned.emplace_back(key, value);
      return true;
    }));
    ASSERT_EQ(scanned, pairs_in(model_, in, begin, end));
    if (snapshots_.empty()) return;
    const Held& held = snapshots_[random_.below(snapshots_.size())];
    const auto then = held.snapshot->get(in, name);
    ASSERT_TRUE(then) << then.error().detail;
    ASSERT_EQ(*then, value_in(held.contents, in, name));
    Pairs walked;
    const auto at = held.snapshot->cursor(in, begin, end);
    for (; at->valid(); at->next()) {
      if (!is_internal(in, at->key())) walked.emplace_back(at->key(), at->value());
    }
    ASSERT_TRUE(at->status());
    ASSERT_EQ(walked, pairs_in(held.contents, in, begin, end));
  }

  static void compare_whole(const Held& held) {
    const auto found = test::read_contents(*held.snapshot);
    ASSERT_TRUE(found) << found.error().detail;
    ASSERT_EQ(test::difference(held.contents, *found), "");
  }

  static bool is_internal(Keyspace keyspace, std::string_view key) {
    return keyspace == Keyspace::meta && (key == kCheckpointKey || key == kFormatKey);
  }
  static std::optional<std::string> value_in(const Contents& contents, Keyspace keyspace,
                                             const std::string& key) {
    const auto map = contents.find(keyspace);
    if (map == contents.end()) return std::nullopt;
    const auto at = map->second.find(key);
    return at == map->second.end() ? std::nullopt : std::optional(at->second);
  }
  static Pairs pairs_in(const Contents& contents, Keyspace keyspace, const std::string& begin,
                        const std::string& end) {
    Pairs pairs;
    const auto map = contents.find(keyspace);
    if (map == contents.end()) return pairs;
    for (const auto& pair : map->second) {
      if (pair.first >= begin && (end.empty() || pair.first < end)) pairs.push_back(pair);
    }
    return pairs;
  }

  SeededRandom random_;
  test::MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
  Seq seq_ = 1;
  Contents model_;
  std::vector<Held> snapshots_;
};

TEST(MergedView, ReadsLikeAMapAtEveryMomentThatIsHeld) {
  for (std::uint64_t seed = 0; seed < test::seed_count(40); ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(RandomReads(seed).run());
  }
}

}  // namespace
}  // namespace reprise::storage
