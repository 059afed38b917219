// The journal's bytes: segment headers and frames (docs/format.md, byte by byte).
//
// A segment is a file that is filled once, from front to back, and used again when all it holds has
// reached the base. What it held in an earlier life is still behind its end then. So every frame's
// checksum starts from a seed that is of this directory and this segment number alone: an old frame
// never passes for a new one, nor one of another directory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reprise::storage::journal {

// Tells the files of one data directory from those of another.
using DirectoryId = std::array<char, 16>;

inline constexpr std::size_t kSegmentHeaderBytes = 64;
inline constexpr std::size_t kFrameHeaderBytes = 32;
inline constexpr std::size_t kFrameAlignment = 8;
inline constexpr std::uint64_t kBlockBytes = 4096;  // what writes past the page cache are made of

struct SegmentHeader {
  std::uint32_t format{};
  DirectoryId directory{};
  std::uint64_t number{};
  std::uint64_t capacity{};     // bytes of the file
  std::uint64_t first_batch{};  // the number of its first batch
  std::uint64_t
      previous_end{};  // where the frames of the segment before it end; 0: it is the first

  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};

std::string encode_segment_header(const SegmentHeader& header);
// nullopt: no header, or a damaged one.
std::optional<SegmentHeader> decode_segment_header(std::string_view bytes);

enum class FrameKind : std::uint8_t {
  batch,
  end,  // the journal goes on in the next segment, whose header is synced
};

struct FrameHeader {
  FrameKind kind{};
  std::uint32_t body_bytes{};
  std::uint32_t mutations{};
  std::uint64_t batch{};         // its number; of an end: the last batch before it
  std::uint64_t synced_batch{};  // the last batch known to be synced when this was written
};

// What a frame takes in its segment.
constexpr std::uint64_t frame_bytes(std::uint64_t body_bytes) {
  return (kFrameHeaderBytes + body_bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// A frame stands right behind the one before, or, if that was still being written, in the next
// block: two writes of whole blocks must not meet in one.
constexpr std::uint64_t next_block(std::uint64_t offset) {
  return (offset + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

std::uint32_t frame_seed(const DirectoryId& directory, std::uint64_t segment);

std::string encode_frame_header(const FrameHeader& frame, std::string_view body,
                                std::uint32_t seed);

struct Frame {
  FrameHeader header;
  std::string_view body;
};
// The frame at the front of `bytes`. nullopt: none, a damaged one, or one of another life.
std::optional<Frame> decode_frame(std::string_view bytes, std::uint32_t seed);

// The first place from `offset` on where a frame could stand; bytes.size() when there is none.
std::size_t find_frame(std::string_view bytes, std::size_t offset);

// Whether a frame's front stands here, intact or not: its mark, and the batch number it should
// have.
bool looks_like_frame(std::string_view bytes, std::uint64_t batch);

}  // namespace reprise::storage::journal
