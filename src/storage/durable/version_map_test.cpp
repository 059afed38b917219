#include "storage/durable/version_map.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "storage/keys.h"

namespace reprise::storage {
namespace {

using Version = VersionMap::Version;

std::vector<std::string> keys_of(const VersionMap& map) {
  std::vector<std::string> keys;
  for (auto at = map.begin(); at != map.end(); ++at) keys.push_back(at.key());
  return keys;
}

void put(VersionMap& map, const std::string& key, std::uint64_t batch) {
  const auto at = map.lower_bound(key);
  if (at != map.end() && at.is_at(key)) {
    at.version().batch = batch;
  } else {
    map.insert(at, key, {.batch = batch});
  }
}

TEST(VersionMap, KeysAreInByteOrderWhateverTheirLength) {
  const std::vector<std::string> in_order = {std::string(),
                                             std::string(1, '\0'),
                                             std::string(15, '\0'),
                                             std::string(16, '\0'),
                                             std::string(17, '\0'),
                                             std::string(17, '\0') + "a",
                                             std::string(16, '\0') + "a",
                                             "a",
                                             std::string("a\0", 2),
                                             std::string("a\0\0", 3),
                                             "aa",
                                             "abcdefgh",
                                             "abcdefghi",
                                             "abcdefghijklmnop",
                                             "abcdefghijklmnopq",
                                             "abcdefghijklmnopqr",
                                             "abcdefghijklmnopr",
                                             "b",
                                             "\x7f",
                                             "\x80",
                                             "\xff",
                                             std::string(40, '\xff')};
  ASSERT_TRUE(std::ranges::is_sorted(in_order));
  VersionMap map;
  for (std::size_t i = 0; i < in_order.size(); ++i) put(map, in_order[i * 7 % in_order.size()], i);
  EXPECT_EQ(keys_of(map), in_order);
}

TEST(VersionMap, JobsThatComeInOrderAreFoundAgain) {
  constexpr Seq kJobs = 10'000;
  VersionMap map;
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    const std::string key = job_key({1, seq});
    ASSERT_TRUE(map.is_behind_all(key));
    map.append(key, {.batch = seq});
    ASSERT_FALSE(map.is_behind_all(key));
  }
  EXPECT_EQ(map.size(), kJobs);
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    ASSERT_EQ(map.find(job_key({1, seq})).version().batch, seq);
  }
  EXPECT_EQ(map.find(job_key({1, kJobs + 1})), map.end());
  EXPECT_EQ(map.find(job_key({0, 1})), map.end());
  EXPECT_EQ(map.lower_bound(job_key({0, 1})), map.begin());
  EXPECT_EQ(map.lower_bound(job_key({2, 1})), map.end());
}

// A queue that is worked off: erased in front, now and then with one that comes back.
TEST(VersionMap, JobsThatGoInOrderLeaveTheOthersWhereTheyAre) {
  constexpr Seq kJobs = 1000;
  VersionMap map;
  for (Seq seq = 1; seq <= kJobs; ++seq) map.append(job_key({1, seq}), {.batch = seq});
  for (Seq seq = 1; seq <= kJobs; ++seq) {
    map.erase(map.seek(job_key({1, seq})));
    if (seq % 7 == 0) {
      const std::string key = job_key({1, seq - 3});
      const auto at = map.seek(key);
      ASSERT_EQ(at == map.end(), seq == kJobs);
      map.insert(at, key, {.batch = kJobs + seq});
      ASSERT_EQ(map.begin().key(), key);
      ASSERT_EQ(map.begin().version().batch, kJobs + seq);
      map.erase(map.seek(key));
    }
    ASSERT_EQ(map.size(), kJobs - seq);
    if (seq == kJobs) break;
    const auto next = map.seek(job_key({1, seq + 1}));
    ASSERT_EQ(next, map.begin());
    ASSERT_EQ(next.version().batch, seq + 1);
  }
}

TEST(VersionMap, OlderVersionsGoWithTheirKey) {
  VersionMap map;
  const auto with_older = [] {
    return Version{.batch = 3, .older = new Version{.batch = 2, .older = new Version{.batch = 1}}};
  };
  map.append("a", with_older());
  map.append("b", with_older());
  map.append("c", with_older());
  map.erase(map.find("a"));
  VersionMap::free_older(map.find("b").version());
  EXPECT_EQ(map.find("b").version().older, nullptr);
  EXPECT_EQ(map.find("c").version().older->older->batch, 1U);  // the sanitizers see what is left
}

// Against a plain map, with keys that share their beginnings.
class VersionMapProperty : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  std::string random_key() {
    static const std::vector<std::string> fronts = {"", std::string(12, '\0'), std::string(16, 'x'),
                                                    "abcdefghijklmno", job_key({7, 1000})};
    std::string key = fronts[random_.below(fronts.size())];
    for (std::uint64_t left = random_.below(4); left > 0; --left) {
      key.push_back(static_cast<char>(random_.below(6)));
    }
    return key;
  }

  void step() {
    const std::string key = random_key();
    const auto at = random_.below(2) == 0 ? map_.lower_bound(key) : map_.seek(key);
    const auto known = model_.lower_bound(key);
    ASSERT_EQ(at == map_.end(), known == model_.end());
    if (at != map_.end()) {
      ASSERT_EQ(at.key(), known->first);
      ASSERT_EQ(at.version().batch, known->second);
      ASSERT_FALSE(at.is_before(key));
      ASSERT_EQ(at.is_at(key), known->first == key);
    }
    ASSERT_EQ(map_.is_behind_all(key), model_.empty() || model_.rbegin()->first < key);
    if (random_.below(8) < 5) {
      const std::uint64_t batch = random_.next_u64();
      put(map_, key, batch);
      model_[key] = batch;
    } else if (at != map_.end()) {
      const auto next = map_.erase(at);
      const auto known_next = model_.erase(known);
      ASSERT_EQ(next == map_.end(), known_next == model_.end());
      if (next != map_.end()) {
        ASSERT_EQ(next.key(), known_next->first);
      }
    }
    ASSERT_EQ(map_.size(), model_.size());
  }

  SeededRandom random_{GetParam()};
  VersionMap map_;
  std::map<std::string, std::uint64_t> model_;
};

TEST_P(VersionMapProperty, IsAMap) {
  for (int i = 0; i < 4'000; ++i) {
    step();
    if (HasFatalFailure()) return;
  }
  auto known = model_.begin();
  for (auto at = map_.begin(); at != map_.end(); ++at, ++known) {
    ASSERT_EQ(at.key(), known->first);
    ASSERT_EQ(at.version().batch, known->second);
  }
  EXPECT_EQ(known, model_.end());
  map_.clear();
  EXPECT_TRUE(map_.empty());
  EXPECT_EQ(map_.begin(), map_.end());
}

INSTANTIATE_TEST_SUITE_P(Seeds, VersionMapProperty, ::testing::Range<std::uint64_t>(0, 8));

}  // namespace
}  // namespace reprise::storage
