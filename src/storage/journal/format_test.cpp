#include "storage/journal/format.h"

#include <gtest/gtest.h>

#include <set>

namespace reprise::storage::journal {
namespace {

constexpr DirectoryId kDirectory = {'o', 'u', 'r', 's', '\0', '\xff'};
constexpr DirectoryId kOtherDirectory = {'o', 'u', 'r', 's', '\0', '\xfe'};

SegmentHeader some_header() {
  return {.format = 2,
          .directory = kDirectory,
          .number = 42,
          .capacity = 1 << 20,
          .first_batch = 1000,
          .previous_end = 4096};
}

// The frame as it stands in its segment, padding included.
std::string whole_frame(const FrameHeader& header, std::string_view body, std::uint32_t seed) {
  std::string bytes = encode_frame_header(header, body, seed).append(body);
  bytes.resize(frame_bytes(body.size()));
  return bytes;
}

std::string some_frame(std::string_view body, std::uint32_t seed) {
  return whole_frame({.kind = FrameKind::batch,
                      .body_bytes = static_cast<std::uint32_t>(body.size()),
                      .mutations = 3,
                      .batch = 77,
                      .synced_batch = 70},
                     body, seed);
}

TEST(SegmentHeader, ComesBackAsItWas) {
  const std::string bytes = encode_segment_header(some_header());
  EXPECT_EQ(bytes.size(), kSegmentHeaderBytes);
  EXPECT_EQ(decode_segment_header(bytes), some_header());
  EXPECT_EQ(decode_segment_header(bytes + "and what follows it"), some_header());
}

TEST(SegmentHeader, WithAnyFlippedBitIsNone) {
  const std::string bytes = encode_segment_header(some_header());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(decode_segment_header(flipped), std::nullopt) << bit;
  }
}

TEST(SegmentHeader, CutShortOrZeroedIsNone) {
  const std::string bytes = encode_segment_header(some_header());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(decode_segment_header(bytes.substr(0, length)), std::nullopt) << length;
  }
  EXPECT_EQ(decode_segment_header(std::string(kSegmentHeaderBytes, '\0')), std::nullopt);
}

TEST(Frame, ComesBackAsItWas) {
  const std::uint32_t seed = frame_seed(kDirectory, 42);
  for (const std::string body : {"", "b", "1234567", "12345678", "123456789"}) {
    const std::string bytes = some_frame(body, seed);
    EXPECT_EQ(bytes.size() % kFrameAlignment, 0U);
    const std::string followed = bytes + "and what follows it";
    const auto frame = decode_frame(followed, seed);
    ASSERT_TRUE(frame) << body;
    EXPECT_EQ(frame->header.kind, FrameKind::batch);
    EXPECT_EQ(frame->header.mutations, 3U);
    EXPECT_EQ(frame->header.batch, 77U);
    EXPECT_EQ(frame->header.synced_batch, 70U);
    EXPECT_EQ(frame->body, body);
  }
}

TEST(Frame, OfEachKindKeepsItsKind) {
  for (const FrameKind kind : {FrameKind::batch, FrameKind::end}) {
    const std::string bytes = whole_frame({.kind = kind, .batch = 5, .synced_batch = 5}, {}, 1);
    EXPECT_EQ(bytes.size(), kFrameHeaderBytes);
    const auto frame = decode_frame(bytes, 1);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->header.kind, kind);
  }
}

TEST(Frame, WithAnyFlippedBitIsNone) {
  const std::uint32_t seed = frame_seed(kDirectory, 42);
  const std::string body = "sixteen of bytes";  // fills its padding, which no checksum covers
  const std::string bytes = some_frame(body, seed);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_frame(flipped, seed)) << bit;
  }
}

TEST(Frame, CutShortOrZeroedIsNone) {
  const std::uint32_t seed = frame_seed(kDirectory, 42);
  const std::string bytes = some_frame("sixteen of bytes", seed);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_frame(bytes.substr(0, length), seed)) << length;
    std::string zeroed = bytes;
    std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(length), zeroed.end(), '\0');
    EXPECT_FALSE(decode_frame(zeroed, seed)) << length;
  }
}

TEST(Frame, OfAnotherDirectoryOrSegmentIsNone) {
  const std::string bytes = some_frame("body", frame_seed(kDirectory, 42));
  EXPECT_TRUE(decode_frame(bytes, frame_seed(kDirectory, 42)));
  EXPECT_FALSE(decode_frame(bytes, frame_seed(kOtherDirectory, 42)));
  for (std::uint64_t segment = 0; segment < 10000; ++segment) {
    if (segment == 42) continue;
    ASSERT_FALSE(decode_frame(bytes, frame_seed(kDirectory, segment))) << segment;
  }
}

TEST(Frame, SeedsOfSegmentsAreAllDifferent) {
  std::set<std::uint32_t> seeds;
  for (std::uint64_t segment = 0; segment < 10000; ++segment) {
    ASSERT_TRUE(seeds.insert(frame_seed(kDirectory, segment)).second) << segment;
  }
}

TEST(Frame, IsFoundAmongOtherBytes) {
  const std::string frame = some_frame("body", 1);
  std::string bytes(1000 * kFrameAlignment, '\0');
  EXPECT_EQ(find_frame(bytes, 0), bytes.size());
  const std::size_t place = 500 * kFrameAlignment;
  bytes.replace(place, frame.size(), frame);
  EXPECT_EQ(find_frame(bytes, 0), place);
  EXPECT_EQ(find_frame(bytes, place), place);
  EXPECT_EQ(find_frame(bytes, place + kFrameAlignment), bytes.size());
  EXPECT_EQ(find_frame(frame, 0), 0U);
}

TEST(Frame, TornBehindItsFrontStillLooksLikeOne) {
  std::string bytes = some_frame("sixteen of bytes", 1);
  bytes.back() ^= 1;
  EXPECT_FALSE(decode_frame(bytes, 1));
  EXPECT_TRUE(looks_like_frame(bytes, 77));
  EXPECT_FALSE(looks_like_frame(bytes, 78));
  EXPECT_FALSE(looks_like_frame(std::string(64, '\0'), 0));
  EXPECT_FALSE(looks_like_frame(bytes.substr(0, kFrameHeaderBytes - 1), 77));
}

}  // namespace
}  // namespace reprise::storage::journal
