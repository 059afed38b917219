#include "storage/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"

namespace reprise::storage {
namespace {

constexpr QueueNumber kLastQueue = std::numeric_limits<QueueNumber>::max();
constexpr Seq kLastSeq = std::numeric_limits<Seq>::max();

JobKey random_job(SeededRandom& random) {
  // Few bits each, shifted anywhere: numbers of all sizes, and often the same queue.
  const auto queue = static_cast<QueueNumber>(random.below(4) << random.below(31));
  return {.queue = queue, .seq = random.below(8) << random.below(61)};
}

TEST(JobKeyBytes, AreQueueThenSeqBigEndian) {
  EXPECT_EQ(job_key({.queue = 0x01020304, .seq = 0x05060708090a0b0c}),
            "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c");
}

TEST(JobKeyBytes, ReadBackAndSortAsTheirNumbers) {
  SeededRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    const JobKey a = random_job(random);
    const JobKey b = random_job(random);
    EXPECT_EQ(parse_job_key(job_key(a)), a);
    EXPECT_EQ(job_key(a) < job_key(b), a < b);
  }
  const JobKey last{.queue = kLastQueue, .seq = kLastSeq};
  EXPECT_EQ(parse_job_key(job_key(last)), last);
}

TEST(JobKeyBytes, OfAnyOtherLengthAreNoKey) {
  const std::string key = job_key({.queue = 1, .seq = 2});
  for (std::size_t length = 0; length < key.size(); ++length) {
    EXPECT_EQ(parse_job_key(key.substr(0, length)), std::nullopt);
  }
  EXPECT_EQ(parse_job_key(key + "x"), std::nullopt);
}

TEST(EndingKeyBytes, AreQueueKindTimeThenSeq) {
  const EndingKey ending{.queue = 0x01020304,
                         .kind = EndKind::completed,
                         .at = Timestamp(Duration(0x1112131415161718)),
                         .seq = 0x2122232425262728};
  const std::string key = ending_key(ending);
  EXPECT_EQ(key,
            "\x01\x02\x03\x04\x01\x11\x12\x13\x14\x15\x16\x17\x18"
            "\x21\x22\x23\x24\x25\x26\x27\x28");
  EXPECT_EQ(parse_ending_key(key), ending);
  EXPECT_EQ(parse_ending_key(key + "x"), std::nullopt);
  EXPECT_EQ(parse_ending_key(key.substr(1)), std::nullopt);
  std::string unknown_kind = key;
  unknown_kind[4] = 2;
  EXPECT_EQ(parse_ending_key(unknown_kind), std::nullopt);
}

TEST(EndingKeyBytes, SortByQueueKindTimeAndSeq) {
  SeededRandom random(1);
  const auto ending = [&] {
    return EndingKey{.queue = static_cast<QueueNumber>(random.below(3)),
                     .kind = static_cast<EndKind>(random.below(2)),
                     .at = Timestamp(Duration(random.below(4) << random.below(60))),
                     .seq = random.below(4) << random.below(61)};
  };
  for (int i = 0; i < 2000; ++i) {
    const EndingKey a = ending();
    const EndingKey b = ending();
    EXPECT_EQ(ending_key(a) < ending_key(b), a < b);
    EXPECT_LE(endings_begin(a.queue, a.kind), ending_key(a));
    EXPECT_LT(ending_key(a), endings_end(a.queue, a.kind));
  }
}

TEST(WebhookKeyBytes, ReadBackAndSortByTimeOfDeath) {
  const WebhookKey early{.died_at = Timestamp(Duration(5)), .queue = 9, .seq = 9};
  const WebhookKey late{.died_at = Timestamp(Duration(256)), .queue = 1, .seq = 1};
  EXPECT_LT(webhook_key(early), webhook_key(late));
  EXPECT_EQ(parse_webhook_key(webhook_key(late)), late);
  EXPECT_EQ(parse_webhook_key(webhook_key(late) + "x"), std::nullopt);
  EXPECT_LT(webhook_key(late), prefix_end(kWebhookPrefix));
  EXPECT_EQ(operation_key(0x0102030405060708), "operation/\x01\x02\x03\x04\x05\x06\x07\x08");
  EXPECT_EQ(audit_key(0x0102030405060708), "audit/\x01\x02\x03\x04\x05\x06\x07\x08");
}

TEST(IdempotencyKeyBytes, AreQueueThenTheKeyAsItCame) {
  const std::string text("k\0\xff", 3);
  const std::string key = idempotency_key(7, text);
  EXPECT_EQ(key, std::string("\0\0\0\x07k\0\xff", 7));
  const auto parts = parse_idempotency_key(key);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->queue, 7U);
  EXPECT_EQ(parts->key, text);
}

TEST(IdempotencyKeyBytes, MayHaveAnEmptyKeyButNotLessThanAQueue) {
  ASSERT_TRUE(parse_idempotency_key(idempotency_key(7, "")));
  EXPECT_EQ(parse_idempotency_key(idempotency_key(7, ""))->key, "");
  EXPECT_FALSE(parse_idempotency_key("\0\0\0"));
}

TEST(QueueRange, HoldsAllKeysOfThatQueueAndNoOther) {
  for (const QueueNumber queue : {0U, 1U, 0xFFU, 0x100U, 0xFFFFFFU, kLastQueue - 1}) {
    const std::string begin = queue_begin(queue);
    const std::string end = queue_end(queue);
    const auto inside = [&](const std::string& key) { return begin <= key && key < end; };
    EXPECT_TRUE(inside(job_key({.queue = queue, .seq = 0})));
    EXPECT_TRUE(inside(job_key({.queue = queue, .seq = kLastSeq})));
    EXPECT_TRUE(inside(idempotency_key(queue, "")));
    EXPECT_TRUE(inside(idempotency_key(queue, std::string(600, '\xff'))));
    EXPECT_FALSE(inside(job_key({.queue = queue + 1, .seq = 0})));
    EXPECT_FALSE(inside(idempotency_key(queue + 1, "")));
    if (queue > 0) {
      EXPECT_FALSE(inside(job_key({.queue = queue - 1, .seq = kLastSeq})));
    }
  }
}

TEST(QueueKey, SortsByNamespaceThenName) {
  const std::vector<QueueName> sorted = {
      {"a", "z"}, {"a-b", "a"}, {"ab", "a"}, {"ab", "a.b"}, {"ab", "b"}};
  std::vector<std::string> keys;
  for (const QueueName& name : sorted) keys.push_back(queue_key(name));
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(keys.front(), std::string("a\0z", 3));
}

TEST(ConfigKey, SortsByNamespaceThenKey) {
  const std::vector<std::pair<std::string, std::string>> sorted = {
      {"a", "z"}, {"a-b", "a"}, {"ab", "a"}, {"ab", "a.b"}, {"ab", "b"}};
  std::vector<std::string> keys;
  for (const auto& [ns, key] : sorted) keys.push_back(config_key(ns, key));
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(keys.front(), std::string("config/a\0z", 10));
  EXPECT_TRUE(keys.front().starts_with(kConfigPrefix));
  EXPECT_LT(keys.back(), prefix_end(kConfigPrefix));
}

TEST(ThrottleKey, SortsByNamespaceThenKey) {
  EXPECT_EQ(throttle_key("a", "z"), std::string("throttle/a\0z", 12));
  EXPECT_LT(throttle_key("a", "z"), throttle_key("a-b", "a"));
  EXPECT_LT(throttle_key("ab", "b"), prefix_end(kThrottlePrefix));
}

TEST(NoteKey, SortsByItsKeyAndSharesItsPrefixes) {
  EXPECT_EQ(note_key("worker/shop"), "note/worker/shop");
  EXPECT_EQ(note_key(""), kNotePrefix);
  EXPECT_LT(note_key("a"), note_key("a/b"));
  EXPECT_LT(note_key("a/b"), note_key("b"));
  EXPECT_LT(note_key("worker/shop/z"), prefix_end(note_key("worker/shop/")));
  EXPECT_GT(note_key("worker/shop2"), prefix_end(note_key("worker/shop/")));
  EXPECT_LT(note_key("\xFF\xFF"), prefix_end(kNotePrefix));
  EXPECT_LT(note_key("a\xFF\xFF"), prefix_end(note_key("a\xFF")));
  EXPECT_EQ(prefix_end(note_key("a\xFF")), note_key("b"));
}

TEST(MetaKeys, AreDistinct) {
  EXPECT_EQ(totals_key(0x01020304), "totals/\x01\x02\x03\x04");
  EXPECT_NE(totals_key(1), totals_key(2));
  EXPECT_NE(kFormatKey, kServerKey);
}

}  // namespace
}  // namespace reprise::storage
