// What a start makes of a journal: whole, cut short by a crash, or damaged.
#include "storage/journal/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "storage/records.h"
#include "support/journal_disk.h"

namespace reprise::storage::journal {
namespace {

using test::JournalDisk;
using test::JournalImage;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Bodies = std::vector<std::string>;

// Of different lengths, so that frames end in every place of their padding.
std::string body(std::uint64_t number, std::size_t bytes = 0) {
  std::string text = "batch " + std::to_string(number) + ":";
  text.resize(bytes != 0 ? bytes : 40 + number * 37 % 200, static_cast<char>('a' + number % 26));
  return text;
}

class JournalRecovery : public testing::Test {
 protected:
  // Appends the next batches and syncs them.
  void append(JournalDisk& disk, std::size_t count, std::size_t bytes = 0) {
    append_buffered(disk, count, bytes);
    ASSERT_TRUE(disk.journal().sync());
  }
  void append_buffered(JournalDisk& disk, std::size_t count, std::size_t bytes = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      all_.push_back(body(all_.size() + 1, bytes));
      const auto appended = disk.append(all_.back(), 1, false);
      ASSERT_TRUE(appended) << appended.error().detail;
      ASSERT_EQ(appended->batch, all_.size());
    }
  }
  Bodies first(std::size_t count) const { return {all_.begin(), all_.begin() + count}; }

  // A few segments, every batch synced, the last one in the midst of its segment.
  JournalImage several_segments() {
    JournalDisk disk;
    EXPECT_TRUE(disk.open());
    for (int i = 0; i < 60; ++i) append(disk, 1);
    disk.close();
    JournalImage image = disk.image();
    EXPECT_GE(image.size(), 3U);
    return image;
  }

  void expect_all(const JournalImage& image) {
    JournalDisk disk(image);
    const auto recovered = disk.recover();
    ASSERT_TRUE(recovered) << recovered.error().detail;
    EXPECT_EQ(disk.bodies(), all_);
  }
  // Refused as damage, with a file's name.
  void expect_refused(const JournalImage& image, const std::string& name) {
    JournalDisk disk(image);
    const auto recovered = disk.recover();
    ASSERT_FALSE(recovered) << "replayed " << disk.bodies().size() << " of " << all_.size();
    EXPECT_EQ(recovered.error().code, Errc::corrupt);
    EXPECT_THAT(recovered.error().detail, HasSubstr(name));
  }
  void expect_all_or_refused(const JournalImage& image) {
    JournalDisk disk(image);
    const auto recovered = disk.recover();
    if (recovered) {
      ASSERT_EQ(disk.bodies().size(), all_.size()) << "silently shortened";
      ASSERT_EQ(disk.bodies(), all_);
    } else {
      ASSERT_EQ(recovered.error().code, Errc::corrupt);
      ASSERT_THAT(recovered.error().detail, HasSubstr(JournalDisk::kDirectory));
    }
  }

  std::vector<std::string> all_;  // batches that were appended
};

TEST_F(JournalRecovery, ANewJournalHoldsNothing) {
  JournalDisk disk;
  ASSERT_TRUE(disk.open());
  disk.close();
  ASSERT_TRUE(disk.open());
  EXPECT_THAT(disk.bodies(), IsEmpty());
  EXPECT_EQ(disk.journal().last_batch(), 0U);
}

TEST_F(JournalRecovery, ReplaysEveryBatchInOrderOverManySegments) {
  expect_all(several_segments());
}

TEST_F(JournalRecovery, GoesOnCountingWhereItWas) {
  JournalDisk disk;
  for (int life = 0; life < 5; ++life) {
    ASSERT_TRUE(disk.open());
    EXPECT_EQ(disk.bodies(), all_);
    append(disk, 20);
    disk.close();
  }
  ASSERT_TRUE(disk.open());
  EXPECT_EQ(disk.bodies(), all_);
  EXPECT_EQ(disk.journal().last_batch(), 100U);
}

TEST_F(JournalRecovery, ReplaysOnlyWhatTheBaseDoesNotHold) {
  const JournalImage image = several_segments();
  for (std::uint64_t covered = 0; covered <= all_.size(); ++covered) {
    JournalDisk disk(image);
    const auto recovered = disk.recover(covered);
    ASSERT_TRUE(recovered) << recovered.error().detail;
    EXPECT_EQ(disk.bodies(),
              Bodies(all_.begin() + static_cast<std::ptrdiff_t>(covered), all_.end()));
    EXPECT_EQ(recovered->last_batch, all_.size());
  }
}

TEST_F(JournalRecovery, ABaseThatIsAheadOfTheJournalIsDamage) {
  JournalDisk disk(several_segments());
  const auto recovered = disk.recover(all_.size() + 1);
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().code, Errc::corrupt);
}

TEST_F(JournalRecovery, TakesABatchThatNoSegmentHolds) {
  JournalDisk disk;
  ASSERT_TRUE(disk.open());
  append(disk, 3);
  append(disk, 1, 100'000);
  append(disk, 2);
  append(disk, 2, 10'000);
  disk.close();
  ASSERT_TRUE(disk.open());
  EXPECT_EQ(disk.bodies(), all_);
  append(disk, 1, 50'000);
  disk.close();
  expect_all(disk.image());
}

TEST_F(JournalRecovery, TakesBatchesThatFillASegmentToItsLastByte) {
  // Up to more than what fits.
  for (std::size_t bytes = 4096 - 200; bytes < 4096 + 8; ++bytes) {
    all_.clear();
    JournalDisk disk;
    ASSERT_TRUE(disk.open());
    append(disk, 1, bytes);
    append(disk, 1, bytes);
    append(disk, 1);
    disk.close();
    expect_all(disk.image());
  }
}

TEST_F(JournalRecovery, TakesEmptyBatches) {
  JournalDisk disk;
  ASSERT_TRUE(disk.open());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(disk.append({}, 0, false));
  ASSERT_TRUE(disk.journal().sync());
  disk.close();
  ASSERT_TRUE(disk.recover());
  EXPECT_THAT(disk.bodies(), ElementsAre("", "", ""));
}

// --- A crash ------------------------------------------------------------------------------------

// Batches of which the last ones were never synced; all in one segment.
class TornJournal : public JournalRecovery {
 protected:
  static constexpr std::size_t kSynced = 4;
  static constexpr std::size_t kUnsynced = 4;

  void SetUp() override {
    JournalDisk disk(kOptions);
    ASSERT_TRUE(disk.open());
    append(disk, kSynced);
    const auto before = disk.image();
    append_buffered(disk, kUnsynced);
    disk.close();
    image_ = disk.image();
    ASSERT_EQ(image_.size(), 1U);
    name_ = image_.begin()->first;
    // Frames of the unsynced ones, by where they end.
    std::size_t end = kSegmentHeaderBytes;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (i >= kSynced) begins_.push_back(end);
      end += frame_bytes(all_[i].size());
    }
    end_ = end;
    synced_end_ = begins_.front();
  }
  // How many batches are left when the file reads like this. It must open by itself.
  std::size_t left(const std::string& content) {
    JournalImage image = image_;
    image[name_] = content;
    JournalDisk disk(kOptions, image);
    const auto recovered = disk.recover();
    EXPECT_TRUE(recovered) << recovered.error().detail;
    EXPECT_EQ(disk.bodies(), first(disk.bodies().size()));
    EXPECT_GE(disk.bodies().size(), kSynced);
    notices_ = disk.notices();
    return disk.bodies().size();
  }
  const std::string& whole() { return image_.begin()->second; }

  static constexpr JournalDisk::Options kOptions{.segment_bytes_min = 8192,
                                                 .segment_bytes_max = 8192};
  JournalImage image_;
  std::string name_;
  std::vector<std::size_t> begins_;
  std::size_t synced_end_ = 0;
  std::size_t end_ = 0;
  std::vector<std::string> notices_;
};

TEST_F(TornJournal, KeepsAllOfItWhenOnlyTheProcessEnded) {
  EXPECT_EQ(left(whole()), kSynced + kUnsynced);
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(TornJournal, ZeroedFromAnyByteOnKeepsWhatIsWholeBefore) {
  for (std::size_t at = synced_end_; at <= end_; ++at) {
    std::string torn = whole();
    std::fill(torn.begin() + static_cast<std::ptrdiff_t>(at), torn.end(), '\0');
    const auto whole_before = static_cast<std::size_t>(
        std::ranges::count_if(begins_, [&](std::size_t begin) { return begin < at; }));
    // The frame that `at` is in may be whole all the same: its padding is zeros.
    const std::size_t found = left(torn);
    EXPECT_LE(found, kSynced + whole_before) << at;
    EXPECT_GE(found + 1, kSynced + whole_before) << at;
  }
}

TEST_F(TornJournal, CutAtARecordBoundaryKeepsEverythingBeforeIt) {
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    std::string torn = whole();
    std::fill(torn.begin() + static_cast<std::ptrdiff_t>(begins_[i]), torn.end(), '\0');
    EXPECT_EQ(left(torn), kSynced + i);
    EXPECT_THAT(notices_, IsEmpty());
  }
}

TEST_F(TornJournal, OldBytesFromAnyByteOnCountForNothing) {
  // As in a file that was used before: frames of another segment, a multiple of their alignment off
  // and not.
  std::string old(whole().size(), '\0');
  for (std::size_t at = 0; at + 48 <= old.size(); at += 48) {
    const std::string frame =
        encode_frame_header({.kind = FrameKind::batch,
                             .body_bytes = 16,
                             .mutations = 1,
                             .batch = 5,
                             .synced_batch = 1000},
                            "sixteen of bytes", frame_seed(JournalDisk::kId, 77)) +
        "sixteen of bytes";
    old.replace(at, frame.size(), frame);
  }
  for (std::size_t at = synced_end_; at <= end_; ++at) {
    const std::string torn = whole().substr(0, at) + old.substr(at);
    EXPECT_LE(left(torn), kSynced + kUnsynced) << at;
  }
}

// Writes that were not synced reach the disk in any order.
TEST_F(TornJournal, ALostSectorLosesItsBatchAndAllBehindIt) {
  constexpr std::size_t kSector = 512;
  const std::size_t first_sector = synced_end_ / kSector + 1;
  for (std::size_t sector = first_sector; sector * kSector < end_; ++sector) {
    std::string torn = whole();
    const auto from = torn.begin() + static_cast<std::ptrdiff_t>(sector * kSector);
    std::fill(from, from + kSector, '\0');
    const std::size_t found = left(torn);
    EXPECT_LT(found, all_.size()) << sector;
    std::size_t end = synced_end_;
    for (std::size_t i = kSynced; i < found; ++i) end += frame_bytes(all_[i].size());
    EXPECT_LE(end, sector * kSector + kFrameAlignment);
  }
}

TEST_F(TornJournal, AFlippedBitInWhatWasNotSyncedLeavesAllThatWas) {
  for (std::size_t at = synced_end_; at < end_; ++at) {
    std::string flipped = whole();
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    left(flipped);
  }
}

TEST_F(TornJournal, TellsWhereItCut) {
  std::string torn = whole();
  const std::size_t last = begins_.back();
  torn[last + kFrameHeaderBytes] ^= 1;
  EXPECT_EQ(left(torn), all_.size() - 1);
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_THAT(notices_[0], AllOf(HasSubstr(JournalDisk::kDirectory), HasSubstr(name_),
                                 HasSubstr("byte " + std::to_string(last)), HasSubstr("crash")));
}

// The batch behind the torn one is whole, and the next life writes one of the same length as the
// torn one. It must not stand in front of the old one then.
TEST_F(TornJournal, ANewBatchNeverBringsLeftoversBack) {
  for (std::size_t torn_batch = kSynced; torn_batch + 1 < all_.size(); ++torn_batch) {
    std::string torn = whole();
    torn[begins_[torn_batch - kSynced] + kFrameHeaderBytes] ^= 1;
    JournalImage image = image_;
    image[name_] = torn;
    JournalDisk disk(kOptions, image);
    ASSERT_TRUE(disk.open());
    ASSERT_EQ(disk.bodies(), first(torn_batch));
    Bodies expected = first(torn_batch);
    expected.push_back(std::string(all_[torn_batch].size(), 'n'));
    ASSERT_TRUE(disk.append(expected.back(), 1, false));
    disk.close();
    ASSERT_TRUE(disk.open());
    EXPECT_EQ(disk.bodies(), expected);
    disk.close();
    ASSERT_TRUE(disk.open());
    EXPECT_EQ(disk.bodies(), expected);
  }
}

// --- Batches side by side -----------------------------------------------------------------------

class JournalSideBySide : public JournalRecovery {
 protected:
  struct UnderWay {
    std::string body;
    Journal::Place place;
  };

  void SetUp() override {
    ASSERT_TRUE(disk_.open());
    append(disk_, 2);
  }
  UnderWay place(std::size_t bytes = 0) {
    all_.push_back(body(all_.size() + 1, bytes));
    auto placed = disk_.journal().place(all_.back(), 1, true);
    EXPECT_TRUE(placed) << placed.error().detail;
    return {all_.back(), *std::move(placed)};
  }
  Status write(const UnderWay& batch) { return disk_.journal().write(batch.place, batch.body, 1); }

  static constexpr JournalDisk::Options kOptions{.segment_bytes_min = 8 * kBlockBytes,
                                                 .segment_bytes_max = 8 * kBlockBytes};
  JournalDisk disk_{kOptions};
};

TEST_F(JournalSideBySide, AreReadBackInTheirOrderWhicheverWasWrittenFirst) {
  const UnderWay first = place();
  const UnderWay second = place();
  const UnderWay third = place();
  EXPECT_NE(first.place.offset % kBlockBytes, 0U);
  EXPECT_EQ(second.place.offset, kBlockBytes);
  EXPECT_EQ(third.place.offset, 2 * kBlockBytes);
  const Status third_written = write(third);
  const Status first_written = write(first);
  const Status second_written = write(second);
  ASSERT_TRUE(disk_.journal().end(first.place, first_written));
  ASSERT_TRUE(disk_.journal().end(second.place, second_written));
  ASSERT_TRUE(disk_.journal().end(third.place, third_written));
  const UnderWay alone = place();
  EXPECT_EQ(alone.place.offset, third.place.offset + frame_bytes(third.body.size()));
  ASSERT_TRUE(disk_.journal().end(alone.place, write(alone)));
  disk_.close();
  expect_all(disk_.image());
}

TEST_F(JournalSideBySide, WithoutTheFirstTheOthersCountForNothing) {
  const UnderWay first = place();
  const UnderWay second = place();
  ASSERT_TRUE(write(second));
  disk_.close();
  ASSERT_TRUE(disk_.open());
  all_.resize(2);
  EXPECT_EQ(disk_.bodies(), all_);
  EXPECT_THAT(disk_.notices(),
              ElementsAre(AllOf(HasSubstr("unfinished write"),
                                HasSubstr("byte " + std::to_string(first.place.offset)))));
  append(disk_, 3);  // which get their numbers
  disk_.close();
  expect_all(disk_.image());
}

TEST_F(JournalSideBySide, DamageOfOneInABlockOfItsOwnIsNamedWithItsPlace) {
  const UnderWay first = place();
  const UnderWay second = place();
  const Status first_written = write(first);
  ASSERT_TRUE(disk_.journal().end(first.place, first_written));
  ASSERT_TRUE(disk_.journal().end(second.place, write(second)));
  disk_.close();
  JournalImage image = disk_.image();
  image.begin()->second[second.place.body_offset()] ^= 1;
  JournalDisk damaged(kOptions, image);
  const auto recovered = damaged.recover();
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().code, Errc::corrupt);
  EXPECT_THAT(recovered.error().detail,
              AllOf(HasSubstr("byte " + std::to_string(second.place.offset)),
                    HasSubstr("batch 4 cannot be read, and it was synced")));
}

TEST_F(JournalSideBySide, OneThatNeedsANewSegmentWaitsForTheOthers) {
  const UnderWay first = place();
  EXPECT_TRUE(disk_.journal().has_place_for(6 * kBlockBytes, true));
  EXPECT_FALSE(disk_.journal().has_place_for(7 * kBlockBytes, true));
  ASSERT_TRUE(disk_.journal().end(first.place, write(first)));
  ASSERT_TRUE(disk_.journal().has_place_for(8 * kBlockBytes, true));
  const UnderWay large = place(8 * kBlockBytes);
  EXPECT_NE(large.place.segment, first.place.segment);
  ASSERT_TRUE(disk_.journal().end(large.place, write(large)));
  disk_.close();
  expect_all(disk_.image());
}

TEST_F(JournalSideBySide, OneThroughThePageCacheWaitsForTheOthersAndTheyForItsSync) {
  const UnderWay first = place();
  EXPECT_FALSE(disk_.journal().has_place_for(10, false));
  ASSERT_TRUE(disk_.journal().end(first.place, write(first)));
  append_buffered(disk_, 1);
  const UnderWay synced = place();
  EXPECT_TRUE(synced.place.is_written);
  EXPECT_FALSE(disk_.journal().has_place_for(10, false));
  ASSERT_TRUE(disk_.journal().end(synced.place, write(synced)));
  disk_.cut_power(test::Loss::all, 1);
  ASSERT_TRUE(disk_.open());
  EXPECT_EQ(disk_.bodies(), all_);
}

TEST_F(JournalSideBySide, AfterOneThatFailedAllFail) {
  const UnderWay first = place();
  const UnderWay second = place();
  const Status second_written = write(second);
  ASSERT_TRUE(second_written);
  const Status failed = disk_.journal().end(first.place, Error{Errc::io, "planted"});
  EXPECT_EQ(failed.error().detail, "planted");
  EXPECT_EQ(disk_.journal().end(second.place, second_written).error().detail, "planted");
  EXPECT_TRUE(disk_.journal().has_place_for(1, true));  // nobody waits for what never comes
  EXPECT_EQ(disk_.journal().place("x", 1, true).error().detail, "planted");
  EXPECT_EQ(disk_.journal().sync().error().detail, "planted");
}

// --- Damage -------------------------------------------------------------------------------------

class DamagedJournal : public JournalRecovery {
 protected:
  void SetUp() override { image_ = several_segments(); }
  JournalImage changed(const std::string& name, std::string content) {
    JournalImage image = image_;
    image[name] = std::move(content);
    return image;
  }
  JournalImage without(const std::string& name) {
    JournalImage image = image_;
    image.erase(name);
    return image;
  }
  JournalImage image_;
};

TEST_F(DamagedJournal, AFlippedBitAnywhereIsHarmlessOrNamed) {
  for (const auto& [name, content] : image_) {
    for (std::size_t at = 0; at < content.size(); ++at) {
      SCOPED_TRACE(name + " byte " + std::to_string(at));
      std::string flipped = content;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
      ASSERT_NO_FATAL_FAILURE(expect_all_or_refused(changed(name, std::move(flipped))));
    }
  }
}

TEST_F(DamagedJournal, AFlippedBitInABatchIsNamedWithFileAndPlace) {
  const std::string name = segment_file_name(1);
  std::string& content = image_.at(name);
  content[kSegmentHeaderBytes + kFrameHeaderBytes] ^= 1;
  expect_refused(image_, name + " is damaged at byte " + std::to_string(kSegmentHeaderBytes) + ":");
}

TEST_F(DamagedJournal, OfTheLastBatchIsNamedTooBecauseItIsMarkedAsSynced) {
  const std::string name = image_.rbegin()->first;
  std::string& content = image_.rbegin()->second;
  content[content.rfind(all_.back())] ^= 1;
  expect_refused(image_, name + " is damaged at byte ");
}

TEST_F(DamagedJournal, AZeroedBlockIsHarmlessOrNamed) {
  for (const std::size_t block : {32U, 512U, 1024U, 4096U}) {
    for (const auto& [name, content] : image_) {
      for (std::size_t at = 0; at < content.size(); at += block) {
        SCOPED_TRACE(name + " byte " + std::to_string(at) + ", " + std::to_string(block));
        std::string zeroed = content;
        zeroed.replace(at, block, block, '\0');
        ASSERT_NO_FATAL_FAILURE(expect_all_or_refused(changed(name, std::move(zeroed))));
      }
    }
  }
}

TEST_F(DamagedJournal, OfTheMarkBesideItIsHarmless) {
  ASSERT_TRUE(image_.synced_mark);
  const std::string whole = *image_.synced_mark;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    image_.synced_mark = whole;
    (*image_.synced_mark)[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ASSERT_NO_FATAL_FAILURE(expect_all(image_)) << bit;
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    image_.synced_mark = whole.substr(0, length);
    ASSERT_NO_FATAL_FAILURE(expect_all(image_)) << length;
  }
  image_.synced_mark.reset();
  expect_all(image_);
}

TEST_F(DamagedJournal, ATruncatedSegmentIsNamed) {
  for (const auto& [name, content] : image_) {
    for (std::size_t length = 0; length < content.size(); length += 64) {
      SCOPED_TRACE(name + " to " + std::to_string(length));
      expect_refused(changed(name, content.substr(0, length)), name);
    }
  }
}

TEST_F(DamagedJournal, ASegmentThatGrewIsNamed) {
  for (const auto& [name, content] : image_) {
    expect_refused(changed(name, content + std::string(4096, '\0')), name);
  }
}

TEST_F(DamagedJournal, AMissingSegmentIsNamed) {
  for (const auto& [name, content] : image_) {
    SCOPED_TRACE(name);
    // Of the first there is no trace but its number.
    const bool is_first = name == image_.begin()->first;
    expect_refused(without(name), is_first ? "batch 1 is missing" : name);
  }
}

TEST_F(DamagedJournal, NoSegmentAtAllIsDamage) { expect_refused({}, JournalDisk::kDirectory); }

TEST_F(DamagedJournal, ARenamedSegmentIsNamed) {
  for (const auto& [name, content] : image_) {
    const std::uint64_t number = *parse_segment_file_name(name);
    for (const std::uint64_t other : {number + 1, number - 1, std::uint64_t{100}}) {
      SCOPED_TRACE(name + " as " + std::to_string(other));
      JournalImage image = without(name);
      image[segment_file_name(other)] = content;
      expect_refused(image, JournalDisk::kDirectory);
    }
  }
}

TEST_F(DamagedJournal, SwappedSegmentsAreDamage) {
  std::swap(image_.at(segment_file_name(1)), image_.at(segment_file_name(2)));
  expect_refused(image_, segment_file_name(1));
}

TEST_F(DamagedJournal, ASegmentOfAnotherDirectoryIsNamed) {
  for (const auto& [name, content] : image_) {
    auto header = *decode_segment_header(content);
    header.directory[0] ^= 1;
    std::string other = content;
    other.replace(0, kSegmentHeaderBytes, encode_segment_header(header));
    expect_refused(changed(name, other), name + " is damaged at byte 0: it belongs to another");
  }
}

TEST_F(DamagedJournal, AnUnreadableHeaderIsDamageWhereverItIs) {
  for (const auto& [name, content] : image_) {
    SCOPED_TRACE(name);
    std::string zeroed = content;
    zeroed.replace(0, kSegmentHeaderBytes, kSegmentHeaderBytes, '\0');
    expect_refused(changed(name, zeroed), JournalDisk::kDirectory);
  }
}

TEST_F(DamagedJournal, ANewerFormatIsRefusedWithBothVersions) {
  const std::string name = image_.rbegin()->first;
  std::string& content = image_.rbegin()->second;
  auto header = *decode_segment_header(content);
  header.format = kFormatVersion + 1;
  content.replace(0, kSegmentHeaderBytes, encode_segment_header(header));
  JournalDisk disk(image_);
  const auto recovered = disk.recover();
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().code, Errc::io);
  EXPECT_THAT(recovered.error().detail,
              AllOf(HasSubstr(name), HasSubstr("format " + std::to_string(kFormatVersion + 1)),
                    HasSubstr("up to format " + std::to_string(kFormatVersion))));
}

TEST_F(DamagedJournal, FilesOfOthersAreLeftAlone) {
  image_["README"] = "not ours";
  image_["1.seg"] = "not ours either";
  expect_all(image_);
}

// The same after a restart: the segment that it began has all the batches since.
TEST_F(DamagedJournal, AfterARestartEveryFlipAndLossIsHarmlessOrNamed) {
  JournalDisk disk(image_);
  ASSERT_TRUE(disk.open());
  append(disk, 3);
  disk.close();
  image_ = disk.image();
  const std::string name = image_.rbegin()->first;
  const std::string content = image_.rbegin()->second;
  for (std::size_t at = 0; at < 1024; ++at) {
    SCOPED_TRACE(at);
    std::string flipped = content;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    ASSERT_NO_FATAL_FAILURE(expect_all_or_refused(changed(name, std::move(flipped))));
  }
  expect_refused(changed(name, std::string(content.size(), '\0')), name);
  expect_refused(changed(name, ""), name);
  expect_refused(without(name), name);
}

// Nothing in it yet, but what comes before it says that it was begun.
TEST_F(DamagedJournal, TheSegmentThatARestartBeganIsNotMissedSilently) {
  JournalDisk disk(image_);
  ASSERT_TRUE(disk.open());
  disk.close();
  image_ = disk.image();
  expect_all(image_);
  const std::string name = image_.rbegin()->first;
  ASSERT_NO_FATAL_FAILURE(expect_all_or_refused(without(name)));
}

}  // namespace
}  // namespace reprise::storage::journal
