#include "base/ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/random.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::Optional;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::vector<Seq> brute_force(std::string_view prefix, Seq seq_end, std::size_t limit) {
  std::vector<Seq> found;
  for (Seq seq = 1; seq < seq_end && found.size() < limit; ++seq) {
    if (encode_job_id(seq).starts_with(prefix)) found.push_back(seq);
  }
  return found;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The place that absl's tables give a hash begins above its lowest seven bits.
std::uint64_t place_of(JobKey job) { return NeighbourHash{}(job) >> 7; }

TEST(NeighbourHash, SixteenSeqsStandSideBySideAndAreToldApart) {
  std::set<std::uint64_t> tags;
  for (Seq seq = 160; seq < 176; ++seq) {
    EXPECT_EQ(place_of({3, seq}), place_of({3, 160}) + (seq - 160));
    tags.insert(NeighbourHash{}(JobKey{3, seq}) & 0x7F);
  }
  EXPECT_EQ(tags.size(), 16U);
}

TEST(NeighbourHash, ScattersBlocksWhateverSeqsAQueueHas) {
  for (const Seq stride : {16U, 1024U, 65536U}) {
    std::map<std::uint64_t, int> blocks;  // of a table of 1024 blocks
    for (Seq i = 0; i < 1024; ++i) ++blocks[place_of({1, i * stride}) / 16 % 1024];
    for (const auto& [block, jobs] : blocks) EXPECT_LE(jobs, 8) << stride;
    EXPECT_GT(blocks.size(), 550U) << stride;
  }
  EXPECT_NE(place_of({1, 160}), place_of({2, 160}));
}

TEST(Scramble, IsSplitmix64) {
  // The reference generator's first outputs for seed 0.
  EXPECT_EQ(scramble(0x9E3779B97F4A7C15ULL), 0xE220A8397B1DCDAFULL);
  EXPECT_EQ(scramble(0x9E3779B97F4A7C15ULL * 2), 0x6E789E6AA1B965F4ULL);
}

TEST(Scramble, UnscrambleIsItsInverse) {
  SeededRandom random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t value = random.next_u64();
    ASSERT_EQ(unscramble(scramble(value)), value);
    ASSERT_EQ(scramble(unscramble(value)), value);
  }
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, kMax}) {
    EXPECT_EQ(unscramble(scramble(value)), value);
  }
}

TEST(JobId, DecodesToTheSeqItEncodes) {
  SeededRandom random(2);
  for (Seq seq = 0; seq < 10'000; ++seq) ASSERT_THAT(decode_job_id(encode_job_id(seq)), seq);
  for (int i = 0; i < 10'000; ++i) {
    const Seq seq = random.next_u64();
    ASSERT_THAT(decode_job_id(encode_job_id(seq)), Optional(seq));
  }
  EXPECT_THAT(decode_job_id(encode_job_id(kMax)), Optional(kMax));
}

TEST(JobId, Has13CharactersOfTheAlphabet) {
  const std::string_view alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  for (Seq seq = 0; seq < 1000; ++seq) {
    const std::string id = encode_job_id(seq);
    ASSERT_EQ(id.size(), kJobIdChars);
    ASSERT_EQ(id.find_first_not_of(alphabet), std::string::npos) << id;
  }
}

TEST(JobId, NeverRepeatsInAMillion) {
  std::vector<std::string> ids;
  for (Seq seq = 1; seq <= 1'000'000; ++seq) ids.push_back(encode_job_id(seq));
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

TEST(JobId, StaysTheSameAcrossVersions) {
  // Ids are in users' logs and scripts: these may never change.
  EXPECT_EQ(encode_job_id(0), "0000000000000");
  EXPECT_EQ(encode_job_id(1), "5D4GP3M80P1F5");
  EXPECT_EQ(encode_job_id(2), "DQMHRJWX2P54A");
}

TEST(JobId, TakesLowerCase) {
  const std::string id = encode_job_id(42);
  EXPECT_THAT(decode_job_id(lower(id)), Optional(Seq{42}));
}

TEST(JobId, ReadsLookAlikesAsTheDigitsTheyResemble) {
  const auto plain = decode_job_id("0101010101010");
  ASSERT_TRUE(plain);
  EXPECT_EQ(decode_job_id("OIOIOIOIOIOIO"), plain);
  EXPECT_EQ(decode_job_id("oioioioioioio"), plain);
  EXPECT_EQ(decode_job_id("OLOLOLOLOLOLO"), plain);
  EXPECT_EQ(decode_job_id("olololololo10"), plain);
}

TEST(JobId, RefusesCharactersOutsideTheAlphabet) {
  for (const char bad : {'U', 'u', '-', ' ', '!', '\0', '\x7F', '\xC3'}) {
    std::string id = encode_job_id(7);
    id[5] = bad;
    EXPECT_FALSE(decode_job_id(id)) << "character " << int{bad};
  }
}

TEST(JobId, RefusesOtherLengths) {
  EXPECT_FALSE(decode_job_id(""));
  EXPECT_FALSE(decode_job_id("012345678901"));
  EXPECT_FALSE(decode_job_id("01234567890123"));
}

TEST(JobId, RefusesMoreThan64Bits) {
  EXPECT_TRUE(decode_job_id("FZZZZZZZZZZZZ"));
  EXPECT_FALSE(decode_job_id("G000000000000"));
  EXPECT_FALSE(decode_job_id("ZZZZZZZZZZZZZ"));
}

TEST(IdPrefix, FindsWhatBruteForceFinds) {
  constexpr Seq kEnd = 20'000;
  SeededRandom random(3);
  for (int i = 0; i < 60; ++i) {
    const Seq seq = 1 + random.below(kEnd + 1000);  // some are not there
    // From 10 characters on there are fewer ids than seqs, so both ways of looking are used.
    const std::size_t size = 1 + random.below(kJobIdChars);
    const std::size_t limit = 1 + random.below(1000);
    const std::string prefix = encode_job_id(seq).substr(0, size);
    ASSERT_THAT(seqs_with_id_prefix(prefix, kEnd, limit),
                Optional(brute_force(prefix, kEnd, limit)))
        << prefix;
  }
}

TEST(IdPrefix, AnyLengthFindsItsOwnJob) {
  const std::string id = encode_job_id(4711);
  for (std::size_t size = 1; size <= kJobIdChars; ++size) {
    const auto found = seqs_with_id_prefix(id.substr(0, size), 5000, 5000);
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::ranges::binary_search(*found, Seq{4711})) << size << " characters";
  }
}

TEST(IdPrefix, AmbiguousOneGivesAllUpToTheLimitAscending) {
  const auto all = seqs_with_id_prefix("7", 1000, 1000);
  ASSERT_TRUE(all);
  ASSERT_GT(all->size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(*all));
  const auto two = seqs_with_id_prefix("7", 1000, 2);
  EXPECT_THAT(two, Optional(ElementsAre((*all)[0], (*all)[1])));
}

TEST(IdPrefix, LimitAlsoHoldsWhenIdsAreEnumerated) {
  // Seqs beyond any real server, so that 2^15 ids leave many in range.
  const auto all = seqs_with_id_prefix("7ZK3M9QAX2", kMax, 100'000);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 32768U);
  EXPECT_TRUE(std::ranges::is_sorted(*all));
  const auto two = seqs_with_id_prefix("7ZK3M9QAX2", kMax, 2);
  EXPECT_THAT(two, Optional(ElementsAre((*all)[0], (*all)[1])));
}

TEST(IdPrefix, LeavesOutSeqZeroAndSeqsNotYetGiven) {
  EXPECT_THAT(seqs_with_id_prefix("0000000000000", 100, 10), Optional(ElementsAre()));
  const std::string id = encode_job_id(50);
  EXPECT_THAT(seqs_with_id_prefix(id, 50, 10), Optional(ElementsAre()));
  EXPECT_THAT(seqs_with_id_prefix(id, 51, 10), Optional(ElementsAre(50)));
  EXPECT_THAT(seqs_with_id_prefix(id, 0, 10), Optional(ElementsAre()));
  EXPECT_THAT(seqs_with_id_prefix(id, 1, 10), Optional(ElementsAre()));
}

TEST(IdPrefix, TakesLowerCaseAndLookAlikes) {
  const std::string prefix = encode_job_id(99).substr(0, kShownIdChars);
  EXPECT_THAT(seqs_with_id_prefix(lower(prefix), 1000, 2), Optional(ElementsAre(99)));
  EXPECT_EQ(seqs_with_id_prefix("oi", 10'000, 100), seqs_with_id_prefix("01", 10'000, 100));
}

TEST(IdPrefix, RefusesWhatNoIdStartsWith) {
  EXPECT_EQ(seqs_with_id_prefix("", 100, 10), std::nullopt);
  EXPECT_EQ(seqs_with_id_prefix("01234567890123", 100, 10), std::nullopt);
  EXPECT_EQ(seqs_with_id_prefix("12U", 100, 10), std::nullopt);
  EXPECT_EQ(seqs_with_id_prefix("12 ", 100, 10), std::nullopt);
  EXPECT_EQ(seqs_with_id_prefix("Z", 100, 10), std::nullopt);
}

TEST(LeaseToken, DecodesToWhatItEncodes) {
  SeededRandom random(4);
  for (int i = 0; i < 10'000; ++i) {
    const LeaseToken token{
        .job = {.queue = static_cast<QueueNumber>(random.next_u64()), .seq = random.next_u64()},
        .nonce = random.next_u64()};
    const std::string text = encode_lease_token(token);
    ASSERT_EQ(text.size(), 32U);
    ASSERT_THAT(decode_lease_token(text), Optional(token));
    ASSERT_THAT(decode_lease_token(lower(text)), Optional(token));
  }
}

TEST(LeaseToken, IsBigEndianBase32) {
  EXPECT_EQ(encode_lease_token({}), std::string(32, '0'));
  EXPECT_EQ(encode_lease_token({.job = {.queue = 0, .seq = 0}, .nonce = 33}),
            std::string(30, '0') + "11");
  EXPECT_EQ(encode_lease_token({.job = {.queue = 1U << 31, .seq = 0}, .nonce = 0}),
            "G" + std::string(31, '0'));
}

TEST(LeaseToken, RefusesWhatWasNeverAToken) {
  EXPECT_FALSE(decode_lease_token(""));
  EXPECT_FALSE(decode_lease_token(std::string(31, '0')));
  EXPECT_FALSE(decode_lease_token(std::string(33, '0')));
  EXPECT_FALSE(decode_lease_token(std::string(31, '0') + "U"));
  EXPECT_FALSE(decode_lease_token(std::string(31, '0') + "="));
}

TEST(JobKey, OrdersByQueueThenSeq) {
  EXPECT_LT((JobKey{1, 9}), (JobKey{2, 1}));
  EXPECT_LT((JobKey{1, 1}), (JobKey{1, 2}));
  EXPECT_EQ((JobKey{1, 1}), (JobKey{1, 1}));
}

}  // namespace
}  // namespace reprise
