// SegmentPieces: large pieces of the journal for a checkpoint, which reads each of them once. What
// synced commits wrote is not in the page cache, and is read past it: fresh pages of it would cost
// more than the bytes. What buffered commits wrote is still there, and taken from there.
// Threads: one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "storage/journal/segment.h"

namespace reprise::storage {

class SegmentPieces {
 public:
  // Smaller ones are better read the usual way.
  static constexpr std::uint64_t kBytesMin = 64U << 10;
  static constexpr std::uint64_t kBytesMax = 512U << 10;

  SegmentPieces();
  ~SegmentPieces();
  SegmentPieces(const SegmentPieces&) = delete;
  SegmentPieces& operator=(const SegmentPieces&) = delete;

  // These bytes of a segment on the real disk, valid until the next call. nullopt: read them the
  // usual way, because it is better or because this one fails; then that one may know why.
  // The segment is neither renamed nor written over while this reads from it.
  std::optional<std::string_view> read(const journal::Segment& segment, std::uint64_t offset,
                                       std::uint64_t length);

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  class OpenSegment;

  std::unique_ptr<OpenSegment> open_;  // the one that was read last; null: none
  std::unique_ptr<char, Free> memory_;
};

}  // namespace reprise::storage
