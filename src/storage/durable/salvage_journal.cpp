#include "storage/durable/salvage_journal.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "storage/batch.h"
#include "storage/journal/format.h"
#include "storage/journal/segment.h"
#include "storage/journal/synced_mark.h"

namespace reprise::storage {
namespace {

using journal::FrameKind;
using journal::kFrameAlignment;
using journal::kFrameHeaderBytes;
using journal::kSegmentHeaderBytes;
using journal::SegmentHeader;
using journal::SegmentPtr;

constexpr std::uint64_t kPageBytes = 4096;

// A frame that was found to be whole.
struct FramePlace {
  FrameKind kind{};
  std::uint64_t batch{};
  std::uint64_t offset{};
  std::uint32_t body_bytes{};
  std::uint32_t mutations{};

  std::uint64_t end() const { return offset + journal::frame_bytes(body_bytes); }
};

struct SegmentContent {
  SegmentPtr segment;
  std::optional<SegmentHeader> header;  // if it can be read, and is of this life
  std::vector<FramePlace> frames;       // in order of place and batch
};

bool is_zero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

std::string batches_text(std::uint64_t first, std::uint64_t last) {
  if (first == last) return "batch " + std::to_string(first);
  return "batches " + std::to_string(first) + " to " + std::to_string(last);
}

// Accepts anything: to learn whether a body is what a batch should be.
class Nobody final : public Batch::Visitor {
 public:
  void put(Keyspace, std::string_view, std::string_view) override {}
  void erase(Keyspace, std::string_view) override {}
  void erase_range(Keyspace, std::string_view, std::string_view) override {}
};

class JournalSalvage {
 public:
  JournalSalvage(const std::string& directory, const std::optional<CheckpointRecord>& checkpoint,
                 DamageLog& damage)
      : directory_(directory), checkpoint_(checkpoint), damage_(damage) {}

  SalvagedJournal run() {
    open_segments();
    find_id();
    if (id_) {
      for (auto at = segments_.begin(); at != segments_.end();) {
        at = look_into(at->first, at->second) ? std::next(at) : segments_.erase(at);
      }
    } else {
      segments_.clear();
    }
    if (segments_.empty()) {
      damage_.lost(directory_ + ": no segment of the journal is left");
    }
    cut_at_successors();
    apply();
    return std::move(result_);
  }

 private:
  void open_segments() {
    std::vector<std::string> names;
    files_->GetChildren(directory_, ::rocksdb::IOOptions(), &names, nullptr).PermitUncheckedError();
    for (const std::string& name : names) {
      const auto number = journal::parse_segment_file_name(name);
      if (!number) continue;
      auto segment = journal::Segment::open_to_read(*files_, directory_ + "/" + name, *number);
      if (segment) {
        segments_.emplace(*number, SegmentContent{.segment = *std::move(segment)});
      } else {
        damage_.lost(segment.error().detail);
      }
    }
  }

  // The base knows it; otherwise any segment does.
  void find_id() {
    for (auto& [number, content] : segments_) {
      content.header = journal::decode_segment_header(read(content, kSegmentHeaderBytes));
      if (content.header && !id_) id_ = content.header->directory;
    }
    if (checkpoint_) id_ = checkpoint_->directory;
  }

  // What can be read of the segment; where a sector is gone, zeros stand for it.
  std::string read(const SegmentContent& content, std::uint64_t bytes_max) const {
    const journal::Segment& segment = *content.segment;
    const std::uint64_t size = std::min(segment.capacity(), bytes_max);
    std::string bytes;
    if (segment.read(0, size, bytes)) return bytes;
    bytes.assign(size, '\0');
    for (std::uint64_t at = 0; at < size; at += kPageBytes) {
      std::string page;
      if (segment.read(at, std::min(kPageBytes, size - at), page))
        bytes.replace(at, page.size(), page);
    }
    return bytes;
  }

  // False: it holds nothing of this life: a file that waits for its turn, or is lost altogether.
  bool look_into(std::uint64_t number, SegmentContent& content) {
    const std::string& path = content.segment->path();
    if (content.header && content.header->directory != *id_) {
      damage_.noted(path + " belongs to another data directory and is left out");
      return false;
    }
    if (content.header && content.header->number < number) return false;
    if (content.header && content.header->number > number) {
      damage_.lost(path + " is segment " + std::to_string(content.header->number) +
                   " under another segment's name");
      return false;
    }
    const std::string bytes = read(content, std::numeric_limits<std::uint64_t>::max());
    find_frames(bytes, journal::frame_seed(*id_, number), content);
    if (content.header) {
      if (content.header->capacity != content.segment->capacity()) {
        damage_.lost(path + " was " + std::to_string(content.header->capacity) +
                     " bytes long and is " + std::to_string(content.segment->capacity()));
      }
      known_synced_ = std::max(known_synced_, content.header->first_batch - 1);
      return true;
    }
    if (!content.frames.empty()) {
      damage_.noted(path + ": its header cannot be read, its batches can");
      return true;
    }
    if (!is_zero(std::string_view(bytes).substr(0, kSegmentHeaderBytes))) {
      damage_.lost(path + ": its header cannot be read, and no batch is found in it");
    }
    return false;
  }

  void find_frames(std::string_view bytes, std::uint32_t seed, SegmentContent& content) {
    std::uint64_t offset = kSegmentHeaderBytes;
    while ((offset = journal::find_frame(bytes, offset)) < bytes.size()) {
      const auto frame = journal::decode_frame(bytes.substr(offset), seed);
      Nobody nobody;
      const bool whole = frame && (frame->header.kind != FrameKind::batch ||
                                   Batch::visit(frame->body, frame->header.mutations, nobody));
      if (!whole) {
        offset += kFrameAlignment;
        continue;
      }
      known_synced_ = std::max(known_synced_, frame->header.synced_batch);
      content.frames.push_back({.kind = frame->header.kind,
                                .batch = frame->header.batch,
                                .offset = offset,
                                .body_bytes = frame->header.body_bytes,
                                .mutations = frame->header.mutations});
      // What stands behind an end is of a write beside one that a crash cut short.
      if (frame->header.kind == FrameKind::end) return;
      offset = content.frames.back().end();
    }
  }

  // What stands behind the place where the next segment took over was never promised: it is of a
  // write that a crash cut short.
  void cut_at_successors() {
    for (auto at = segments_.begin(); at != segments_.end(); ++at) {
      const auto next = std::next(at);
      if (next == segments_.end() || next->first != at->first + 1 || !next->second.header) continue;
      const SegmentHeader& successor = *next->second.header;
      std::erase_if(at->second.frames, [&](const FramePlace& frame) {
        return frame.kind == FrameKind::batch &&
               (frame.batch >= successor.first_batch ||
                (successor.previous_end != 0 && frame.offset >= successor.previous_end));
      });
    }
  }

  void apply() {
    const std::uint64_t covered = checkpoint_ ? checkpoint_->covered_batch : 0;
    known_synced_ = std::max(known_synced_, covered);
    if (id_) {
      const std::uint64_t marked = journal::SyncedMark::read(*files_, directory_, *id_);
      known_synced_ = std::max(known_synced_, marked);
    }
    // Nothing is known to be new: erasures of everything leave their trace.
    auto overlay = std::make_shared<Overlay>(covered, std::numeric_limits<Seq>::max());
    expected_ = covered + 1;
    bool first = !checkpoint_;  // where it begins is then not known either
    for (const auto& [number, content] : segments_) {
      if (ended_) break;
      begin_at(number, content);
      const std::string bytes = read(content, std::numeric_limits<std::uint64_t>::max());
      for (const FramePlace& frame : content.frames) {
        if (frame.kind != FrameKind::batch) continue;
        ++result_.batches_read;
        if (std::exchange(first, false)) expected_ = frame.batch;
        note_covered_gap(frame.batch, number, content);
        if (frame.batch >= expected_) {
          if (!pass_gap(frame.batch, number, content)) break;
          apply(*overlay, content, frame, bytes);
        }
        last_batch_ = frame.batch;
        last_segment_ = number;
        last_end_ = frame.end();
      }
    }
    // Of what the base has, the last may be what is missing.
    if (!ended_ && last_segment_) {
      auto at = segments_.upper_bound(*last_segment_);
      if (at == segments_.end()) at = segments_.find(*last_segment_);
      note_covered_gap(covered + 1, at->first, at->second);
    }
    if (!ended_ && known_synced_ >= expected_ && !segments_.empty()) {
      lose(known_synced_, place_before(segments_.rbegin()->first, segments_.rbegin()->second));
    }
    check_last();
    result_.overlay = std::move(overlay);
  }

  // The first segment that is left begins with what the base has: what cannot be read of that is
  // missed, too.
  void begin_at(std::uint64_t number, const SegmentContent& content) {
    const bool is_covered =
        checkpoint_ && content.header && content.header->first_batch < expected_;
    if (last_batch_ || !is_covered) return;
    last_batch_ = content.header->first_batch - 1;
    last_segment_ = number;
    last_end_ = kSegmentHeaderBytes;
  }

  // What keeps a start from reading on, and costs nothing: the base has it.
  void note_covered_gap(std::uint64_t found, std::uint64_t number, const SegmentContent& content) {
    if (!last_batch_ || *last_batch_ + 1 >= std::min(found, expected_)) return;
    damage_.noted(place_before(number, content) + ": " +
                  batches_text(*last_batch_ + 1, std::min(found, expected_) - 1) +
                  " cannot be read; nothing is lost by that, it is in the tables");
  }

  // To the batch that was found. False: what is missing before it was never promised, so that it
  // was not either.
  bool pass_gap(std::uint64_t found, std::uint64_t number, const SegmentContent& content) {
    if (found == expected_) return true;
    if (expected_ > known_synced_) {
      ended_ = true;
      return false;
    }
    lose(found - 1, place_before(number, content));
    return true;
  }

  // Where what is missing before the first frame of a segment, or the next, should be.
  std::string place_before(std::uint64_t number, const SegmentContent& content) const {
    const auto path = [this](std::uint64_t segment) {
      return directory_ + "/" + journal::segment_file_name(segment);
    };
    const bool begins_here = !last_segment_ || *last_segment_ != number;
    if (begins_here && !segments_.contains(number - 1)) return path(number - 1) + " is missing";
    const bool before_is_whole = begins_here && content.header &&
                                 (!last_segment_ || last_end_ >= content.header->previous_end);
    if (before_is_whole) return path(number) + " is damaged at its front";
    return path(last_segment_.value_or(number - 1)) + " is damaged at byte " +
           std::to_string(last_end_);
  }

  void lose(std::uint64_t until, const std::string& where) {
    damage_.noted(where + ": " + batches_text(expected_, until) + " cannot be read");
    result_.batches_lost += until - expected_ + 1;
    expected_ = until + 1;
  }

  void apply(Overlay& overlay, const SegmentContent& content, const FramePlace& frame,
             std::string_view bytes) {
    const std::uint64_t body = frame.offset + kFrameHeaderBytes;
    // It was tried before, in find_frames().
    (void)overlay.apply({.number = frame.batch, .segment = content.segment, .body_offset = body},
                        bytes.substr(body, frame.body_bytes), frame.mutations);
    expected_ = frame.batch + 1;
  }

  // A segment that says that the journal goes on in the next.
  void check_last() {
    if (segments_.empty() || ended_) return;
    const auto& [number, content] = *segments_.rbegin();
    const bool goes_on = !content.frames.empty() && content.frames.back().kind == FrameKind::end &&
                         content.frames.back().batch + 1 == expected_;
    const std::string next = directory_ + "/" + journal::segment_file_name(number + 1);
    // The next one may be there, made and never written to: a crash in between.
    if (goes_on && !files_->FileExists(next, ::rocksdb::IOOptions(), nullptr).ok()) {
      damage_.lost(next + " is missing");
    }
  }

  const std::string& directory_;
  const std::optional<CheckpointRecord>& checkpoint_;
  DamageLog& damage_;
  const std::shared_ptr<::rocksdb::FileSystem> files_ = ::rocksdb::FileSystem::Default();
  std::optional<journal::DirectoryId> id_;
  std::map<std::uint64_t, SegmentContent> segments_;  // by number
  std::uint64_t known_synced_ = 0;
  std::uint64_t expected_ = 0;  // the next batch
  std::optional<std::uint64_t> last_batch_;
  std::optional<std::uint64_t> last_segment_;     // where the last batch was found,
  std::uint64_t last_end_ = kSegmentHeaderBytes;  // and where it ends there
  bool ended_ = false;                            // at a write that was cut short
  SalvagedJournal result_;
};

}  // namespace

SalvagedJournal salvage_journal(const std::string& directory,
                                const std::optional<CheckpointRecord>& checkpoint,
                                DamageLog& damage) {
  return JournalSalvage(directory, checkpoint, damage).run();
}

}  // namespace reprise::storage
