#include "storage/journal/recovery.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "storage/records.h"

namespace reprise::storage::journal {
namespace {

using ::rocksdb::IOOptions;

constexpr char kAdvice[] = "; restore a backup, or copy what can be read with `reprise salvage`";

Error damaged(const std::string& path, std::uint64_t offset, const std::string& what) {
  return Error{Errc::corrupt,
               path + " is damaged at byte " + std::to_string(offset) + ": " + what + kAdvice};
}

// A file of the journal's directory.
struct FoundSegment {
  SegmentPtr segment;
  // Of a segment that was begun; an empty one is a spare, as far as its header tells.
  std::optional<SegmentHeader> header;
};
using FoundSegments = std::map<std::uint64_t, FoundSegment>;  // by the number in its name

Result<FoundSegment> open_segment(::rocksdb::FileSystem& files, bool on_real_disk,
                                  const std::string& path, std::uint64_t number) {
  auto segment = Segment::open(files, on_real_disk, path, number);
  if (!segment) return segment.error();
  FoundSegment file{.segment = *std::move(segment)};
  std::string bytes;
  const std::uint64_t front =
      std::min<std::uint64_t>(file.segment->capacity(), kSegmentHeaderBytes);
  REPRISE_TRY(file.segment->read(0, front, bytes));
  file.header = decode_segment_header(bytes);
  return file;
}

Result<FoundSegments> list_segments(::rocksdb::FileSystem& files, bool on_real_disk,
                                    const std::string& directory) {
  std::vector<std::string> names;
  const auto listed = files.GetChildren(directory, IOOptions(), &names, nullptr);
  if (!listed.ok() && !listed.IsNotFound()) return file_error(directory, listed);
  FoundSegments segments;
  for (const std::string& name : names) {
    const auto number = parse_segment_file_name(name);
    if (!number) continue;
    auto file = open_segment(files, on_real_disk, directory + "/" + name, *number);
    if (!file) return file.error();
    segments.emplace(*number, *std::move(file));
  }
  return segments;
}

class Recovery {
 public:
  explicit Recovery(const RecoveryOptions& options) : options_(options) {}

  Result<Contents> run() {
    auto segments = list_segments(*options_.files, options_.on_real_disk, options_.directory);
    if (!segments) return segments.error();
    files_ = *std::move(segments);
    REPRISE_TRY(check_headers());
    REPRISE_TRY(find_first());
    contents_.last_batch = options_.covered_batch;
    known_synced_ = std::max(options_.covered_batch,
                             SyncedMark::read(*options_.files, options_.directory, options_.id));
    for (auto at = first_; at != files_.end() && at->second.header; ++at) {
      REPRISE_TRY(walk(at));
    }
    REPRISE_TRY(sort_out_the_rest());
    return std::move(contents_);
  }

 private:
  // A header that is not this directory's or not this file's; and forgets those of earlier lives.
  Status check_headers() {
    for (auto& [number, file] : files_) {
      const std::string& path = file.segment->path();
      // A file has its size before it has its name.
      if (file.segment->capacity() < kSegmentHeaderBytes + kFrameHeaderBytes) {
        return damaged(path, file.segment->capacity(), "it ends there");
      }
      if (!file.header) continue;
      if (file.header->directory != options_.id) {
        return damaged(path, 0, "it belongs to another data directory");
      }
      if (file.header->format > kFormatVersion) {
        return Error{Errc::io, path + " has format " + std::to_string(file.header->format) +
                                   ", this reprise reads up to format " +
                                   std::to_string(kFormatVersion) +
                                   "; run the newer reprise that wrote it"};
      }
      if (file.header->number > number) {
        return damaged(path, 0,
                       "it is segment " + std::to_string(file.header->number) +
                           " under another segment's name");
      }
      if (file.header->number < number) {
        file.header.reset();  // named for its next life, which has not begun
      } else if (file.header->capacity != file.segment->capacity()) {
        return damaged(path, file.segment->capacity(),
                       "it was " + std::to_string(file.header->capacity) + " bytes long and is " +
                           std::to_string(file.segment->capacity()));
      }
    }
    return ok();
  }

  // The segment with the first batch that the base does not hold.
  Status find_first() {
    const std::uint64_t wanted = options_.covered_batch + 1;
    first_ = files_.end();
    const FoundSegment* earliest = nullptr;
    for (auto at = files_.begin(); at != files_.end(); ++at) {
      if (!at->second.header) continue;
      if (earliest == nullptr) earliest = &at->second;
      if (at->second.header->first_batch <= wanted) first_ = at;
    }
    if (first_ != files_.end()) return ok();
    if (earliest == nullptr) {
      return Error{Errc::corrupt,
                   options_.directory + " is damaged: no segment of the journal is left" + kAdvice};
    }
    return Error{Errc::corrupt, options_.directory + " is damaged: the segment with batch " +
                                    std::to_string(wanted) + " is missing before " +
                                    earliest->segment->path() + kAdvice};
  }

  Status walk(FoundSegments::iterator at) {
    const FoundSegment& file = at->second;
    const SegmentHeader& header = *file.header;
    if (at != first_) REPRISE_TRY(check_succession(*std::prev(at), file));
    std::string bytes;
    REPRISE_TRY(file.segment->read(0, file.segment->capacity(), bytes));
    const std::uint32_t seed = frame_seed(options_.id, header.number);
    std::uint64_t offset = kSegmentHeaderBytes;
    std::uint64_t end = offset;
    std::uint64_t batch = header.first_batch;  // expected next
    bool ended = false;
    while (true) {
      auto frame = decode_frame(bytes_from(bytes, offset), seed);
      if (!frame) {
        offset = next_block(offset);
        frame = decode_frame(bytes_from(bytes, offset), seed);
      }
      if (!frame) break;
      const FrameHeader& found = frame->header;
      if (found.kind != FrameKind::batch) {
        ended = found.batch + 1 == batch;
        break;
      }
      if (found.batch != batch) break;
      known_synced_ = std::max(known_synced_, found.synced_batch);
      if (batch > options_.covered_batch) {
        REPRISE_TRY(options_.replay({.number = batch,
                                     .segment = file.segment,
                                     .body_offset = offset + kFrameHeaderBytes,
                                     .body = frame->body,
                                     .mutations = found.mutations}));
      }
      offset += frame_bytes(found.body_bytes);
      end = offset;
      ++batch;
    }
    contents_.used.push_back({file.segment, header.first_batch});
    contents_.end = end;
    contents_.last_batch = batch - 1;
    const auto next = std::next(at);
    if (next != files_.end() && next->second.header) return ok();  // check_succession compares
    return check_end(at, bytes, ended);
  }

  // Whether a segment begins where the one before it was found to end.
  Status check_succession(const FoundSegments::value_type& before, const FoundSegment& file) const {
    const SegmentHeader& header = *file.header;
    if (header.number != before.first + 1) {
      return Error{Errc::corrupt, options_.directory + "/" + segment_file_name(before.first + 1) +
                                      " is missing" + kAdvice};
    }
    if (header.first_batch != contents_.last_batch + 1 || header.previous_end != contents_.end) {
      return damaged(before.second.segment->path(), contents_.end,
                     "batch " + std::to_string(contents_.last_batch + 1) +
                         " cannot be read, and the next segment goes on behind it");
    }
    return ok();
  }

  // The last segment that was begun. What follows its last frame is nothing, an unfinished write,
  // or damage.
  Status check_end(FoundSegments::iterator at, std::string_view bytes, bool ended) {
    const std::string& path = at->second.segment->path();
    const std::uint64_t lost = contents_.last_batch + 1;
    const std::uint64_t number = at->second.header->number;
    if (ended) {
      const auto next = files_.find(number + 1);
      if (next != files_.end()) return unreadable_header(*next->second.segment);
      return Error{Errc::corrupt, options_.directory + "/" + segment_file_name(number + 1) +
                                      " is missing" + kAdvice};
    }
    // A header is synced before the first frame is written behind it.
    for (auto later = std::next(at); later != files_.end(); ++later) {
      std::string content;
      const Segment& segment = *later->second.segment;
      REPRISE_TRY(segment.read(0, segment.capacity(), content));
      if (synced_according_to(content, 0, later->first)) return unreadable_header(segment);
    }
    // A later batch may be whole, of a write beside the one that was cut short.
    const auto synced_later = synced_according_to(bytes, contents_.end, number);
    known_synced_ = std::max(known_synced_, synced_later.value_or(0));
    const std::uint64_t place = place_of(lost, bytes);
    if (known_synced_ >= lost) {
      return damaged(path, place,
                     "batch " + std::to_string(lost) + " cannot be read, and it was synced");
    }
    const bool was_begun = synced_later || looks_like_frame(bytes_from(bytes, place), lost);
    if (was_begun && options_.notice) {
      options_.notice(path + ": left out an unfinished write at byte " + std::to_string(place) +
                      ", left by a crash or a power cut");
    }
    return ok();
  }

  // Where the batch behind the last one that can be read should be.
  std::uint64_t place_of(std::uint64_t batch, std::string_view bytes) const {
    const std::uint64_t block = next_block(contents_.end);
    return looks_like_frame(bytes_from(bytes, block), batch) ? block : contents_.end;
  }

  static std::string_view bytes_from(std::string_view bytes, std::uint64_t offset) {
    return bytes.substr(std::min<std::size_t>(offset, bytes.size()));
  }

  static Error unreadable_header(const Segment& segment) {
    return damaged(segment.path(), 0, "its header cannot be read");
  }

  // The highest batch that any frame of this segment, from `offset` on, calls synced; nullopt:
  // there is no frame.
  std::optional<std::uint64_t> synced_according_to(std::string_view bytes, std::uint64_t offset,
                                                   std::uint64_t segment) const {
    const std::uint32_t seed = frame_seed(options_.id, segment);
    std::optional<std::uint64_t> synced;
    while ((offset = find_frame(bytes, offset)) < bytes.size()) {
      const auto frame = decode_frame(bytes.substr(offset), seed);
      if (frame) synced = std::max(synced.value_or(0), frame->header.synced_batch);
      offset += kFrameAlignment;
    }
    return synced;
  }

  // Segments before the first one, and files that wait for their turn.
  Status sort_out_the_rest() {
    for (auto at = files_.begin(); at != first_; ++at) {
      contents_.covered.push_back(at->second.segment);
    }
    contents_.next_number = contents_.used.back().segment->number() + 1;
    for (auto at = files_.lower_bound(contents_.next_number); at != files_.end(); ++at) {
      const Segment& segment = *at->second.segment;
      if (at->first == contents_.next_number + contents_.spares.size()) {
        contents_.spares.push_back(at->second.segment);
        continue;
      }
      const auto deleted = options_.files->DeleteFile(segment.path(), IOOptions(), nullptr);
      if (!deleted.ok()) return file_error(segment.path(), deleted);
    }
    return ok();
  }

  const RecoveryOptions& options_;
  FoundSegments files_;
  FoundSegments::iterator first_;
  std::uint64_t known_synced_ = 0;
  Contents contents_;
};

}  // namespace

Result<Contents> recover(const RecoveryOptions& options) { return Recovery(options).run(); }

Result<std::optional<Identity>> identify(::rocksdb::FileSystem& files, bool on_real_disk,
                                         const std::string& directory) {
  const auto segments = list_segments(files, on_real_disk, directory);
  if (!segments) return segments.error();
  std::optional<Identity> identity;
  for (const auto& [number, file] : *segments) {
    if (!file.header) continue;
    if (!identity) identity = Identity{.id = file.header->directory};
    // Or it had some, which are in the base only.
    identity->holds_batches |= file.header->first_batch > 1;
    std::string bytes;
    REPRISE_TRY(file.segment->read(0, file.segment->capacity(), bytes));
    const auto frame = decode_frame(std::string_view(bytes).substr(kSegmentHeaderBytes),
                                    frame_seed(file.header->directory, number));
    identity->holds_batches |= frame && frame->header.kind == FrameKind::batch;
  }
  return identity;
}

}  // namespace reprise::storage::journal
