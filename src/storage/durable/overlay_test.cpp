#include "storage/durable/overlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "storage/durable/overlay_view.h"
#include "storage/keys.h"
#include "support/memory_disk.h"
#include "support/seeds.h"

namespace reprise::storage {
namespace {

constexpr Seq kFloor = 100;  // no job below has a higher seq

std::string old_job(Seq seq = 7) { return job_key({.queue = 1, .seq = seq}); }
std::string new_job(Seq seq = kFloor + 1) { return job_key({.queue = 1, .seq = seq}); }

// An overlay over a segment in memory, which holds the batches one after the other.
class OverlayBench {
 public:
  OverlayBench() {
    disk_.load("/journal", {{"1.seg", std::string(1U << 20, '\0')}});
    auto opened = journal::Segment::open(disk_.files(), false, "/journal/1.seg", 1);
    EXPECT_TRUE(opened);
    segment_ = *std::move(opened);
  }
  // Its number.
  std::uint64_t apply(const Batch& batch) {
    const std::string body(batch.bytes());
    EXPECT_TRUE(segment_->file().write(tail_, body, {}));
    EXPECT_TRUE(overlay_->apply(
        {.number = overlay_->last_batch() + 1, .segment = segment_, .body_offset = tail_}, body,
        batch.count()));
    tail_ += body.size();
    return overlay_->last_batch();
  }
  std::uint64_t put(Keyspace keyspace, std::string_view key, std::string_view value) {
    Batch batch;
    batch.put(keyspace, key, value);
    return apply(batch);
  }
  std::uint64_t erase(Keyspace keyspace, std::string_view key) {
    Batch batch;
    batch.erase(keyspace, key);
    return apply(batch);
  }
  std::uint64_t erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) {
    Batch batch;
    batch.erase_range(keyspace, begin, end);
    return apply(batch);
  }

  // What the overlay says of a key: its value, "erased", or nothing.
  std::string say(Keyspace keyspace, std::string_view key, std::uint64_t view = kLatestView) const {
    return text_of(overlay_->find(keyspace, key, view));
  }
  static std::string text_of(const std::optional<Overlay::Found>& found) {
    if (!found) return "nothing";
    if (found->erased) return "erased";
    const auto value = read_value(found->place);
    EXPECT_TRUE(value);
    return "= " + *value;
  }
  Overlay& overlay() { return *overlay_; }
  std::shared_ptr<Overlay> shared() { return overlay_; }

 private:
  test::MemoryDisk disk_;
  journal::SegmentPtr segment_;
  std::uint64_t tail_ = 64;
  const std::shared_ptr<Overlay> overlay_ = std::make_shared<Overlay>(0, kFloor);
};

class OverlayTest : public testing::Test, protected OverlayBench {};

TEST_F(OverlayTest, SaysNothingOfWhatItDoesNotKnow) {
  EXPECT_TRUE(overlay().empty());
  EXPECT_EQ(overlay().bytes(), 0U);
  EXPECT_EQ(say(Keyspace::jobs, "k"), "nothing");
  EXPECT_FALSE(overlay().next(Keyspace::jobs, {}, kLatestView));
}

TEST_F(OverlayTest, FindsTheLatestValueWhereTheJournalHasIt) {
  put(Keyspace::keys, "k", "first");
  put(Keyspace::keys, "k", "second");
  put(Keyspace::keys, "empty", "");
  EXPECT_EQ(say(Keyspace::keys, "k"), "= second");
  EXPECT_EQ(say(Keyspace::keys, "empty"), "= ");
  EXPECT_EQ(say(Keyspace::jobs, "k"), "nothing");
  EXPECT_EQ(overlay().last_batch(), 3U);
}

TEST_F(OverlayTest, ANewJobThatIsErasedLeavesNothing) {
  for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::states, Keyspace::dead}) {
    put(keyspace, new_job(), "value");
    put(keyspace, new_job(), "another");
    EXPECT_EQ(overlay().entries(keyspace), 1U);
    erase(keyspace, new_job());
    EXPECT_EQ(overlay().entries(keyspace), 0U);
    EXPECT_EQ(say(keyspace, new_job()), "nothing");
  }
  EXPECT_EQ(overlay().bytes(), 0U);
  EXPECT_FALSE(overlay().empty());  // its batches count
}

TEST_F(OverlayTest, ANewJobThatIsErasedBeforeItIsPutLeavesNothing) {
  erase(Keyspace::states, new_job());
  EXPECT_EQ(overlay().entries(Keyspace::states), 0U);
  EXPECT_EQ(overlay().bytes(), 0U);
}

TEST_F(OverlayTest, AnOldJobThatIsErasedLeavesATombstone) {
  for (const Seq seq : {Seq{7}, kFloor}) {
    erase(Keyspace::jobs, old_job(seq));
    EXPECT_EQ(say(Keyspace::jobs, old_job(seq)), "erased");
    put(Keyspace::states, old_job(seq), "value");
    erase(Keyspace::states, old_job(seq));
    EXPECT_EQ(say(Keyspace::states, old_job(seq)), "erased");
  }
  EXPECT_EQ(overlay().entries(Keyspace::jobs), 2U);
  EXPECT_EQ(overlay().entries(Keyspace::states), 2U);
}

TEST_F(OverlayTest, OtherKeysThatAreErasedLeaveATombstone) {
  const std::string long_key = new_job() + "x";  // no job's
  for (const auto& [keyspace, key] : {std::pair{Keyspace::meta, new_job()},
                                      {Keyspace::queues, new_job()},
                                      {Keyspace::keys, new_job()},
                                      {Keyspace::jobs, long_key},
                                      {Keyspace::jobs, std::string("short")}}) {
    put(keyspace, key, "value");
    erase(keyspace, key);
    EXPECT_EQ(say(keyspace, key), "erased");
  }
}

TEST_F(OverlayTest, RemembersTheHighestSeqThatEverWasThere) {
  EXPECT_EQ(overlay().seq_highest(), kFloor);
  put(Keyspace::jobs, new_job(500), "value");
  erase(Keyspace::jobs, new_job(500));
  put(Keyspace::dead, job_key({.queue = 9, .seq = 300}), "value");
  put(Keyspace::keys, job_key({.queue = 9, .seq = 900}), "value");  // no job
  EXPECT_EQ(overlay().seq_highest(), 500U);
}

TEST_F(OverlayTest, AnErasedRangeHidesWhatIsBelowAndTakesWhatIsHere) {
  put(Keyspace::keys, "b", "1");
  put(Keyspace::keys, "d", "1");
  erase_range(Keyspace::keys, "b", "d");
  EXPECT_EQ(overlay().entries(Keyspace::keys), 1U);
  EXPECT_EQ(say(Keyspace::keys, "a"), "nothing");
  EXPECT_EQ(say(Keyspace::keys, "b"), "erased");
  EXPECT_EQ(say(Keyspace::keys, "bb"), "erased");
  EXPECT_EQ(say(Keyspace::keys, "d"), "= 1");
  EXPECT_EQ(say(Keyspace::jobs, "bb"), "nothing");
  put(Keyspace::keys, "bb", "2");
  EXPECT_EQ(say(Keyspace::keys, "bb"), "= 2");
  erase(Keyspace::keys, "bb");
  EXPECT_EQ(say(Keyspace::keys, "bb"), "erased");
}

TEST_F(OverlayTest, WithinABatchTheLaterWordCounts) {
  Batch batch;
  batch.put(Keyspace::keys, "a", "1");
  batch.erase_range(Keyspace::keys, "a", "c");
  batch.put(Keyspace::keys, "b", "2");
  batch.erase(Keyspace::keys, "d");
  batch.put(Keyspace::keys, "d", "3");
  apply(batch);
  EXPECT_EQ(say(Keyspace::keys, "a"), "erased");
  EXPECT_EQ(say(Keyspace::keys, "b"), "= 2");
  EXPECT_EQ(say(Keyspace::keys, "d"), "= 3");
}

TEST_F(OverlayTest, KeepsForAViewWhatItMaySee) {
  const auto before = put(Keyspace::jobs, new_job(), "old");
  overlay().add_view(before);
  const auto after = put(Keyspace::jobs, new_job(), "new");
  erase(Keyspace::jobs, new_job());
  EXPECT_EQ(say(Keyspace::jobs, new_job(), before - 1), "nothing");
  EXPECT_EQ(say(Keyspace::jobs, new_job(), before), "= old");
  EXPECT_EQ(say(Keyspace::jobs, new_job()), "erased");
  EXPECT_GT(after, before);
  overlay().remove_view(before);
  erase(Keyspace::jobs, new_job());  // once nobody looks, it goes
  EXPECT_EQ(overlay().entries(Keyspace::jobs), 0U);
}

TEST_F(OverlayTest, KeepsNothingForNobody) {
  put(Keyspace::keys, "k", std::string(1000, 'x'));
  const auto bytes = overlay().bytes();
  for (int i = 0; i < 100; ++i) put(Keyspace::keys, "k", std::string(1000, 'y'));
  EXPECT_EQ(overlay().bytes(), bytes);
}

TEST_F(OverlayTest, ARangeErasedLaterIsNotSeenByAnEarlierView) {
  const auto before = put(Keyspace::keys, "k", "1");
  overlay().add_view(before);
  erase_range(Keyspace::keys, "a", "z");
  EXPECT_EQ(say(Keyspace::keys, "k", before), "= 1");
  EXPECT_EQ(say(Keyspace::keys, "other", before), "nothing");
  EXPECT_EQ(say(Keyspace::keys, "k"), "erased");
  EXPECT_EQ(say(Keyspace::keys, "other"), "erased");
}

TEST_F(OverlayTest, BytesThatAreNoBatchAreRefused) {
  Overlay overlay(0, 0);
  EXPECT_FALSE(overlay.apply({.number = 1, .segment = nullptr, .body_offset = 0}, "\x1f???", 1));
}

// --- Against a map of versions ------------------------------------------------------------------

// Everything that ever happened, kept: what a key was after each batch.
class History {
 public:
  void put(Keyspace keyspace, const std::string& key, std::string value, std::uint64_t batch) {
    versions_[{keyspace, key}][batch] = "= " + std::move(value);
  }
  void erase(Keyspace keyspace, const std::string& key, std::uint64_t batch) {
    versions_[{keyspace, key}][batch] = "erased";
  }
  // What was said last about it; "nothing" when it was never mentioned.
  std::string at(Keyspace keyspace, const std::string& key, std::uint64_t view) const {
    const auto of_key = versions_.find({keyspace, key});
    if (of_key == versions_.end()) return "nothing";
    const auto after = of_key->second.upper_bound(view);
    return after == of_key->second.begin() ? "nothing" : std::prev(after)->second;
  }

 private:
  std::map<std::pair<Keyspace, std::string>, std::map<std::uint64_t, std::string>> versions_;
};

class RandomOverlay {
 public:
  explicit RandomOverlay(std::uint64_t seed) : random_(seed) {
    for (Seq seq : {5, 6, 7, 101, 102, 103, 104})
      keys_.push_back(job_key({.queue = 1, .seq = seq}));
    for (Seq seq : {8, 105}) keys_.push_back(job_key({.queue = 2, .seq = seq}));
    keys_.emplace_back("short");
  }

  void run() {
    for (int step = 0; step < 120; ++step) {
      change();
      if (random_.below(6) == 0) open_view();
      if (!views_.empty() && random_.below(8) == 0) close_view();
      for (const std::uint64_t view : views_) ASSERT_NO_FATAL_FAILURE(compare(view));
      ASSERT_NO_FATAL_FAILURE(compare(kLatestView));
    }
    // Once nobody looks and all new jobs are gone, nothing of them is left.
    while (!views_.empty()) close_view();
    for (const Keyspace keyspace : kKeyspaces) {
      for (const std::string& key : keys_) bench_.erase(keyspace, key);
    }
    for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::states}) {
      std::string from;
      while (const auto entry = bench_.overlay().next(keyspace, from, kLatestView)) {
        const auto job = parse_job_key(entry->key);
        ASSERT_TRUE(!job || job->seq <= kFloor);
        from = entry->key + '\0';
      }
    }
  }

 private:
  static constexpr std::array kKeyspaces = {Keyspace::jobs, Keyspace::states, Keyspace::keys};

  const std::string& key() { return keys_[random_.below(keys_.size())]; }

  void change() {
    Batch batch;
    const std::uint64_t number = bench_.overlay().last_batch() + 1;
    for (std::uint64_t i = 1 + random_.below(3); i > 0; --i) {
      const Keyspace keyspace = kKeyspaces[random_.below(kKeyspaces.size())];
      const std::string& name = key();
      switch (random_.below(9)) {
        case 0: {
          const auto queue = static_cast<QueueNumber>(1 + random_.below(2));
          batch.erase_range(keyspace, queue_begin(queue), queue_end(queue));
          for (const std::string& other : keys_) {
            if (other >= queue_begin(queue) && other < queue_end(queue)) {
              history_.erase(keyspace, other, number);
            }
          }
          break;
        }
        case 1:
        case 2:
        case 3:
          batch.erase(keyspace, name);
          history_.erase(keyspace, name, number);
          break;
        default: {
          std::string value = std::to_string(random_.next_u64());
          batch.put(keyspace, name, value);
          history_.put(keyspace, name, std::move(value), number);
        }
      }
    }
    bench_.apply(batch);
  }

  void open_view() {
    views_.push_back(bench_.overlay().last_batch());
    bench_.overlay().add_view(views_.back());
  }
  void close_view() {
    const auto at = views_.begin() + static_cast<std::ptrdiff_t>(random_.below(views_.size()));
    bench_.overlay().remove_view(*at);
    views_.erase(at);
  }

  // Of a new job "nothing" is as good as "erased".
  void compare(std::uint64_t view) {
    for (const Keyspace keyspace : kKeyspaces) {
      for (const std::string& name : keys_) {
        std::string expected = history_.at(keyspace, name, view);
        std::string found = bench_.say(keyspace, name, view);
        const auto job = parse_job_key(name);
        const bool is_new = keyspace != Keyspace::keys && job && job->seq > kFloor;
        if (is_new && expected == "erased") expected = "nothing";
        if (is_new && found == "erased") found = "nothing";
        ASSERT_EQ(found, expected) << "view " << view;
      }
      ASSERT_NO_FATAL_FAILURE(compare_walk(keyspace, view));
    }
  }
  // next() finds every key with a value, in order.
  void compare_walk(Keyspace keyspace, std::uint64_t view) {
    std::map<std::string, std::string> walked;
    std::string from;
    while (const auto entry = bench_.overlay().next(keyspace, from, view)) {
      ASSERT_GE(entry->key, from);
      if (!entry->found.erased) walked[entry->key] = OverlayBench::text_of(entry->found);
      from = entry->key + '\0';
    }
    std::map<std::string, std::string> expected;
    for (const std::string& name : keys_) {
      const std::string said = history_.at(keyspace, name, view);
      if (said.starts_with("= ")) expected[name] = said;
    }
    ASSERT_EQ(walked, expected);
  }

  SeededRandom random_;
  OverlayBench bench_;
  History history_;
  std::vector<std::string> keys_;
  std::vector<std::uint64_t> views_;
};

TEST(OverlayVersions, AreWhatEachViewShouldSee) {
  for (std::uint64_t seed = 0; seed < test::seed_count(150); ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(RandomOverlay(seed).run());
  }
}

std::vector<std::string> keys_of(const std::vector<Overlay::Entry>& entries) {
  std::vector<std::string> keys;
  for (const auto& entry : entries) keys.push_back(entry.key);
  return keys;
}

TEST(OverlayView, EntriesAreThoseOfARange) {
  OverlayBench bench;
  for (const char* key : {"a", "b", "c", "d"}) bench.put(Keyspace::keys, key, "value");
  const OverlayView view({bench.shared()}, kLatestView, nullptr);
  EXPECT_THAT(keys_of(view.entries(Keyspace::keys, "b", "d")), testing::ElementsAre("b", "c"));
  EXPECT_THAT(keys_of(view.entries(Keyspace::keys, "x", "z")), testing::IsEmpty());
}

// --- Two layers ---------------------------------------------------------------------------------

TEST(OverlayLayers, TheNewestWordCounts) {
  OverlayBench below;
  OverlayBench above;
  below.put(Keyspace::keys, "a", "below");
  below.put(Keyspace::keys, "b", "below");
  below.put(Keyspace::keys, "c", "below");
  below.put(Keyspace::keys, "d", "below");
  above.put(Keyspace::keys, "a", "above");
  above.erase(Keyspace::keys, "b");
  above.erase_range(Keyspace::keys, "c", "cc");
  const OverlayView view({above.shared(), below.shared()}, kLatestView, nullptr);
  const auto say = [&](std::string_view key) {
    return OverlayBench::text_of(view.find(Keyspace::keys, key));
  };
  EXPECT_EQ(say("a"), "= above");
  EXPECT_EQ(say("b"), "erased");
  EXPECT_EQ(say("c"), "erased");
  EXPECT_EQ(say("d"), "= below");
  EXPECT_EQ(say("e"), "nothing");
  std::vector<std::string> walked;
  std::string from;
  while (const auto entry = view.next(Keyspace::keys, from)) {
    walked.push_back(entry->key + " " + OverlayBench::text_of(entry->found));
    from = entry->key + '\0';
  }
  EXPECT_THAT(walked, testing::ElementsAre("a = above", "b erased", "c erased", "d = below"));
  EXPECT_THAT(keys_of(view.entries(Keyspace::keys, "b", "d")), testing::ElementsAre("b", "c"));
  EXPECT_EQ(view.hidden_until(Keyspace::keys, "c"), "cc");
  EXPECT_EQ(view.hidden_until(Keyspace::keys, "d"), std::nullopt);
}

}  // namespace
}  // namespace reprise::storage
