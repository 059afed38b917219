#include "storage/journal/format.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace reprise::storage::journal {
namespace {

constexpr std::string_view kSegmentMark = "REPRISEJ";
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
// By FrameKind. Far from text, zeros and each other.
constexpr std::array<std::uint32_t, 2> kFrameMarks = {0xB17C'4A91, 0xE4D0'9F27};

std::optional<FrameKind> kind_of(std::uint32_t mark) {
  const auto found = std::ranges::find(kFrameMarks, mark);
  if (found == kFrameMarks.end()) return std::nullopt;
  return static_cast<FrameKind>(found - kFrameMarks.begin());
}

}  // namespace

std::string encode_segment_header(const SegmentHeader& header) {
  std::string out(kSegmentMark);
  std::string covered;
  ByteWriter fields(covered);
  fields.fixed(header.format);
  covered.append(header.directory.data(), header.directory.size());
  fields.fixed(header.number);
  fields.fixed(header.capacity);
  fields.fixed(header.first_batch);
  fields.fixed(header.previous_end);
  ByteWriter(out).fixed(crc32c(covered));
  return out + covered;
}

std::optional<SegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kSegmentMark)) return std::nullopt;
  ByteReader in(bytes.substr(kSegmentMark.size(), kSegmentHeaderBytes - kSegmentMark.size()));
  const auto checksum = in.fixed<std::uint32_t>();
  if (crc32c(in.rest()) != checksum) return std::nullopt;
  SegmentHeader header;
  header.format = in.fixed<std::uint32_t>();
  for (char& byte : header.directory) byte = in.fixed<char>();
  header.number = in.fixed<std::uint64_t>();
  header.capacity = in.fixed<std::uint64_t>();
  header.first_batch = in.fixed<std::uint64_t>();
  header.previous_end = in.fixed<std::uint64_t>();
  return header;
}

std::uint32_t frame_seed(const DirectoryId& directory, std::uint64_t segment) {
  std::string identity(directory.data(), directory.size());
  ByteWriter(identity).fixed(segment);
  return crc32c(identity);
}

std::string encode_frame_header(const FrameHeader& frame, std::string_view body,
                                std::uint32_t seed) {
  std::string covered;
  covered.reserve(kFrameHeaderBytes);
  ByteWriter fields(covered);
  fields.fixed(kFrameMarks[static_cast<std::size_t>(frame.kind)]);
  fields.fixed(frame.body_bytes);
  fields.fixed(frame.mutations);
  fields.fixed(frame.batch);
  fields.fixed(frame.synced_batch);
  std::string out;
  out.reserve(kFrameHeaderBytes);
  ByteWriter(out).fixed(crc32c(body, crc32c(covered, seed)));
  return out + covered;
}

std::optional<Frame> decode_frame(std::string_view bytes, std::uint32_t seed) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  ByteReader in(bytes.substr(0, kFrameHeaderBytes));
  const auto checksum = in.fixed<std::uint32_t>();
  const std::string_view covered = in.rest();
  const auto kind = kind_of(in.fixed<std::uint32_t>());
  if (!kind) return std::nullopt;
  Frame frame;
  frame.header.kind = *kind;
  frame.header.body_bytes = in.fixed<std::uint32_t>();
  frame.header.mutations = in.fixed<std::uint32_t>();
  frame.header.batch = in.fixed<std::uint64_t>();
  frame.header.synced_batch = in.fixed<std::uint64_t>();
  if (frame.header.body_bytes > bytes.size() - kFrameHeaderBytes) return std::nullopt;
  frame.body = bytes.substr(kFrameHeaderBytes, frame.header.body_bytes);
  if (crc32c(frame.body, crc32c(covered, seed)) != checksum) return std::nullopt;
  return frame;
}

std::size_t find_frame(std::string_view bytes, std::size_t offset) {
  for (; offset + kFrameHeaderBytes <= bytes.size(); offset += kFrameAlignment) {
    std::uint32_t mark = 0;
    std::memcpy(&mark, bytes.data() + offset + kChecksumBytes, sizeof(mark));
    if (mark == 0) continue;  // what most of a file that is not full consists of
    if (kind_of(mark)) return offset;
  }
  return bytes.size();
}

bool looks_like_frame(std::string_view bytes, std::uint64_t batch) {
  if (bytes.size() < kFrameHeaderBytes) return false;
  ByteReader in(bytes.substr(kChecksumBytes));
  if (!kind_of(in.fixed<std::uint32_t>())) return false;
  in.fixed<std::uint64_t>();
  return in.fixed<std::uint64_t>() == batch;
}

}  // namespace reprise::storage::journal
