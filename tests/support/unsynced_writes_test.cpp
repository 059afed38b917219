#include "support/unsynced_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace reprise::test {
namespace {

using testing::UnorderedElementsAre;
using Cut = UnsyncedWrites::Cut;

constexpr std::uint64_t kSector = 512;
constexpr std::uint64_t kPage = 4096;

// A file in place of a file: does what a file system does and tells UnsyncedWrites of it.
struct Bytes {
  std::string content;
  UnsyncedWrites unsynced;

  void append(std::string_view data) {
    unsynced.grew(content.size(), content.size() + data.size(), Cut::anywhere);
    content.append(data);
  }
  void write(std::uint64_t offset, std::string_view data) {
    const std::uint64_t size = content.size();
    const std::uint64_t end = offset + data.size();
    if (offset < size) unsynced.overwrote(offset, content.substr(offset, data.size()));
    if (end > size) {
      unsynced.grew(size, end, Cut::at_sector);
      content.resize(end);
    }
    content.replace(offset, data.size(), data);
  }
  std::string left(Loss loss, std::uint64_t seed = 0) const {
    SeededRandom random(seed);
    return unsynced.after_power_cut(content, loss, random);
  }
  // All that is possible, given enough seeds.
  std::set<std::string> outcomes(Loss loss) const {
    std::set<std::string> result;
    for (std::uint64_t seed = 0; seed < 300; ++seed) result.insert(left(loss, seed));
    return result;
  }
};

std::string sectors(std::string_view letters) {
  std::string result;
  for (const char letter : letters) result.append(kSector, letter);
  return result;
}

TEST(UnsyncedWrites, LeaveAFileAloneThatWasNotWritten) {
  const Bytes file{.content = sectors("ab"), .unsynced = {}};
  for (const Loss loss : {Loss::all, Loss::tail, Loss::pages}) {
    EXPECT_EQ(file.left(loss), file.content);
  }
}

TEST(UnsyncedWrites, GoBackToTheOldBytesAndTheOldSize) {
  Bytes file{.content = sectors("abc"), .unsynced = {}};
  file.write(700, "new");
  file.write(701, "newer");
  file.write(3 * kSector - 2, "over the end");
  file.write(2 * kPage, "and beyond it");
  file.append("appended");
  EXPECT_EQ(file.left(Loss::all), sectors("abc"));
}

TEST(UnsyncedWrites, AreSafeOnceSynced) {
  Bytes file{.content = sectors("abc"), .unsynced = {}};
  file.write(10, "new");
  file.append("appended");
  file.unsynced.synced();
  EXPECT_TRUE(file.unsynced.empty());
  const std::string synced = file.content;
  file.write(10, "old");
  EXPECT_EQ(file.left(Loss::all), synced);
}

TEST(UnsyncedWrites, OfATailAreCutAtSectorsInTheOrderOfWriting) {
  Bytes file{.content = sectors("aaaa"), .unsynced = {}};
  file.write(2 * kSector, sectors("xy"));
  file.write(0, sectors("z"));
  EXPECT_THAT(file.outcomes(Loss::tail), UnorderedElementsAre(sectors("aaaa"), sectors("aaxa"),
                                                              sectors("aaxy"), sectors("zaxy")));
}

TEST(UnsyncedWrites, OfATailCanLeaveAnEarlierVersionOfASector) {
  Bytes file{.content = sectors("a"), .unsynced = {}};
  file.write(0, "1");
  file.write(1, "2");
  file.write(2, "3");
  const std::string rest(kSector - 3, 'a');
  EXPECT_THAT(file.outcomes(Loss::tail),
              UnorderedElementsAre("aaa" + rest, "1aa" + rest, "12a" + rest, "123" + rest));
}

TEST(UnsyncedWrites, OfATailAreCutAtAnyByteWhenAppended) {
  Bytes file{.content = "ab", .unsynced = {}};
  file.append("c");
  file.append("de");
  EXPECT_THAT(file.outcomes(Loss::tail), UnorderedElementsAre("ab", "abc", "abcd", "abcde"));
}

// A file filled with zeros and written to before its first sync.
TEST(UnsyncedWrites, OfATailNeverKeepWhatWasWrittenIntoBytesAppendedLaterThanTheCut) {
  Bytes file;
  file.append(std::string(100, '0'));
  file.write(0, "x");
  std::set<std::string> outcomes = file.outcomes(Loss::tail);
  EXPECT_TRUE(outcomes.erase("x" + std::string(99, '0')));
  for (const std::string& outcome : outcomes) EXPECT_EQ(outcome, std::string(outcome.size(), '0'));
}

TEST(UnsyncedWrites, OfPagesAreKeptOrLostOneByOne) {
  Bytes file{.content = sectors("aaaa"), .unsynced = {}};
  file.write(0, sectors("x"));
  file.write(kSector, sectors("y"));
  const auto outcomes = file.outcomes(Loss::pages);
  EXPECT_THAT(outcomes, UnorderedElementsAre(sectors("aaaa"), sectors("xaaa"), sectors("ayaa"),
                                             sectors("xyaa")));
}

TEST(UnsyncedWrites, OfPagesAreLostByPageOrBySector) {
  const std::string old(2 * kPage, 'a');
  Bytes file{.content = old, .unsynced = {}};
  file.write(0, std::string(2 * kPage, 'x'));
  int whole_pages = 0;
  int sectors = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::string left = file.left(Loss::pages, seed);
    ASSERT_EQ(left.size(), old.size());
    bool is_torn = false;
    for (std::uint64_t at = 0; at < left.size(); ++at) {
      if (left[at] == left[at / kPage * kPage]) continue;
      is_torn = true;
      ASSERT_EQ(left[at], left[at / kSector * kSector]) << "a torn sector";
    }
    ++(is_torn ? sectors : whole_pages);
  }
  EXPECT_GT(whole_pages, 20);
  EXPECT_GT(sectors, 20);
}

TEST(UnsyncedWrites, OfPagesReadAsZerosWhereTheFileHadNoBytes) {
  Bytes file{.content = "abc", .unsynced = {}};
  file.append(std::string(kPage, 'x'));
  for (const std::string& left : file.outcomes(Loss::pages)) {
    EXPECT_EQ(left.substr(0, 3), "abc");
    const std::string first = left.substr(3, kPage - 3);
    EXPECT_TRUE(first == std::string(first.size(), 'x') ||
                first == std::string(first.size(), '\0'));
  }
}

TEST(UnsyncedWrites, ThatShrinkAFileAreSafeAtOnce) {
  Bytes file{.content = "0123456789", .unsynced = {}};
  file.write(2, "xxxx");
  file.append("yyy");
  file.content.resize(4);
  file.unsynced.shrank(4);
  file.append("zz");
  EXPECT_EQ(file.content, "01xxzz");
  EXPECT_EQ(file.left(Loss::all), "0123");
}

TEST(UnsyncedWrites, OfAFailedSyncAreNotSavedByALaterOne) {
  Bytes file{.content = sectors("abc"), .unsynced = {}};
  file.write(0, "first");
  file.unsynced.sync_failed();
  file.write(2 * kSector, "second");
  file.unsynced.synced();
  std::string expected = sectors("abc");
  expected.replace(2 * kSector, 6, "second");
  EXPECT_EQ(file.left(Loss::all), expected);
}

TEST(UnsyncedWrites, OfAFailedSyncAreSavedByWritingTheirSectorsAgain) {
  Bytes file{.content = sectors("abc"), .unsynced = {}};
  file.write(0, sectors("xy"));
  file.unsynced.sync_failed();
  file.write(100, "again");
  file.unsynced.synced();
  EXPECT_EQ(file.left(Loss::all), file.content.substr(0, kSector) + sectors("bc"));
}

TEST(UnsyncedWrites, OfAFailedSyncMayHaveReachedTheDisk) {
  Bytes file{.content = sectors("a"), .unsynced = {}};
  file.write(0, sectors("x"));
  file.unsynced.sync_failed();
  EXPECT_THAT(file.outcomes(Loss::tail), UnorderedElementsAre(sectors("a"), sectors("x")));
}

TEST(UnsyncedWrites, AppendedBeforeAFailedSyncLoseAllThatIsAppendedLater) {
  Bytes file{.content = "ab", .unsynced = {}};
  file.append("c");
  file.unsynced.sync_failed();
  file.append("d");
  file.unsynced.synced();
  EXPECT_EQ(file.left(Loss::all), "ab");
}

// Against the plainest model: every version of the file that there was.
TEST(UnsyncedWrites, OfATailLeaveAVersionThatThereWasUnlessAWriteIsTorn) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    Bytes file{.content = std::string(random.below(3000), 'a'), .unsynced = {}};
    std::vector<std::string> versions = {file.content};
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t offset = random.below(3000);
      // Within one sector, so that no write can be torn but at the end of the file.
      const std::uint64_t room = (offset / kSector + 1) * kSector - offset;
      const std::string data(1 + random.below(room), static_cast<char>('b' + i));
      if (offset + data.size() > file.content.size()) continue;
      file.write(offset, data);
      versions.push_back(file.content);
      if (random.below(8) == 0) {
        file.unsynced.synced();
        versions = {file.content};
      }
    }
    EXPECT_EQ(file.left(Loss::all), versions.front());
    EXPECT_THAT(versions, testing::Contains(file.left(Loss::tail, seed)));
  }
}

}  // namespace
}  // namespace reprise::test
