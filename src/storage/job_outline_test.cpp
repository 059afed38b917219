// The outline of a job record: what a start reads of it.
#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/records.h"
#include "support/live_attributes.h"

namespace reprise::storage {
namespace {

JobRecord example_job() {
  return {.pushed_at = Timestamp(Duration(1)),
          .priority = 7,
          .key = "key",
          .headers = {{"tenant", "a"}, {"trace", ""}},
          .scheduling = {.fairness_key = "fk", .weight = 300, .throttle_keys = {"t1", "t"}},
          .payload = "payload"};
}

TEST(JobOutline, SaysHowMuchOfTheFrontItTakes) {
  JobRecord record = example_job();
  record.scheduling = test::heaviest_attributes();
  record.payload = std::string(10'000, 'p');
  const std::string bytes = encode_job(record);
  const std::size_t needed = job_outline_bytes(bytes.substr(0, kJobOutlineBytes));
  EXPECT_GT(needed, 17U * 200);
  EXPECT_LT(needed, 18U * 200);
  const auto outline = decode_job_outline(bytes.substr(0, needed));
  ASSERT_TRUE(outline) << outline.error().detail;
  EXPECT_EQ(outline->scheduling, record.scheduling);
  for (std::size_t length = 0; length < needed; ++length) {
    ASSERT_FALSE(decode_job_outline(bytes.substr(0, length))) << length;
  }
}

TEST(JobOutline, IsInTheFirstBytesOfMostRecords) {
  JobRecord record;
  record.payload = std::string(1000, 'p');
  for (const std::string key : {"default", "tenant-000001"}) {
    record.scheduling.fairness_key = key;
    const std::string front = encode_job(record).substr(0, kJobOutlineBytes);
    EXPECT_LE(job_outline_bytes(front), kJobOutlineBytes);
    EXPECT_EQ(decode_job_outline(front)->scheduling, record.scheduling);
  }
}

TEST(JobOutline, RefusesWhatIsTooShortOrOfAnotherVersion) {
  const std::string bytes = encode_job(JobRecord());
  for (std::size_t length = 0; length < 34; ++length) {
    EXPECT_FALSE(decode_job_outline(bytes.substr(0, length))) << length;
    EXPECT_FALSE(decode_job_byte_size(bytes.substr(0, length))) << length;
  }
  for (const char version : {'\0', '\x05'}) {
    std::string other = bytes;
    other.front() = version;
    EXPECT_FALSE(decode_job_outline(other));
    EXPECT_FALSE(decode_job_byte_size(other));
  }
}

// A length that is damaged asks for no more than there is.
TEST(JobOutline, RefusesAttributesThatGoBeyondTheRecord) {
  constexpr std::size_t kLengthOffset = 30;
  std::string bytes = encode_job(example_job());
  bytes[kLengthOffset] = '\x7F';
  EXPECT_EQ(job_outline_bytes(bytes), kLengthOffset + 1 + 0x7F);
  EXPECT_FALSE(decode_job_outline(bytes));
  bytes.replace(kLengthOffset, 10, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
  EXPECT_EQ(job_outline_bytes(bytes), kWholeRecord);
  EXPECT_FALSE(decode_job_outline(bytes));
  EXPECT_EQ(*decode_job_byte_size(bytes), example_job().byte_size());
}

TEST(JobOutline, ReadsAnyBytesWithoutHarm) {
  SeededRandom random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(random.below(90), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.next_u64() >> random.below(64));
    if (!bytes.empty()) bytes.front() = static_cast<char>(1 + random.below(3));
    (void)job_outline_bytes(bytes);
    (void)decode_job_outline(bytes);
  }
}

}  // namespace
}  // namespace reprise::storage
