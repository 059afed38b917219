#include "storage/journal/journal.h"

#include <utility>

#include "base/check.h"
#include "storage/records.h"

namespace reprise::storage::journal {
Result<std::unique_ptr<Journal>> Journal::start(const SegmentPoolOptions& options,
                                                const DirectoryId& directory, Contents contents) {
  // After a crash of the process alone its last batches are there without having been synced. They
  // count from now on.
  if (!contents.used.empty()) REPRISE_TRY(contents.used.back().segment->file().sync());
  std::unique_ptr<Journal> journal(new Journal(options, directory, std::move(contents)));
  auto mark = SyncedMark::open(*options.files, options.directory, directory, options.on_real_disk);
  if (!mark) return mark.error();
  journal->synced_mark_ = *std::move(mark);
  REPRISE_TRY(journal->begin_segment(0));
  return journal;
}

Journal::Journal(const SegmentPoolOptions& options, const DirectoryId& directory, Contents contents)
    : directory_(directory),
      pool_(options, contents.next_number, std::move(contents.spares)),
      tail_(contents.end),
      last_batch_(contents.last_batch),
      ended_batch_(contents.last_batch),
      synced_batch_(contents.last_batch),
      used_(contents.used.begin(), contents.used.end()) {
  if (!used_.empty()) active_ = used_.back().segment;
  for (SegmentPtr& segment : contents.covered) pool_.give_back(std::move(segment));
}

// A batch that is not written durably, or stands behind such bytes, goes through the page cache and
// a sync, which may say nothing of a write beside it.
bool Journal::has_place_for(std::uint64_t body_bytes, bool durably) const {
  return failed_ || !any_under_way() || (durably && !dirty_ && fits(body_bytes));
}

bool Journal::fits(std::uint64_t body_bytes) const {
  // An end follows.
  return next_offset() + frame_bytes(body_bytes) + kFrameHeaderBytes <= active_->capacity();
}

Result<Journal::Place> Journal::place(std::string_view body, std::uint32_t mutations,
                                      bool durably) {
  if (failed_) return *failed_;
  REPRISE_CHECK(has_place_for(body.size(), durably));
  if (!fits(body.size())) {
    const std::uint64_t needed = kSegmentHeaderBytes + frame_bytes(body.size()) + kFrameHeaderBytes;
    if (Status begun = keep_failure(begin_segment(needed)); !begun) return begun.error();
  }
  Place place{.batch = last_batch_ + 1,
              .segment = active_,
              .offset = next_offset(),
              .synced_batch = synced_batch_,
              .is_written = !durably || dirty_};
  if (place.is_written) {
    const Status written = keep_failure(write_at_once(place, body, mutations, durably));
    if (!written) return written.error();
  }
  tail_ = place.offset + frame_bytes(body.size());
  last_batch_ = place.batch;
  return place;
}

Status Journal::write_at_once(const Place& place, std::string_view body, std::uint32_t mutations,
                              bool durably) {
  SegmentFile& file = place.segment->file();
  dirty_ = true;
  REPRISE_TRY(file.write(place.offset, header_of(place, body, mutations), body));
  if (!durably) return ok();
  REPRISE_TRY(file.sync());
  dirty_ = false;
  return ok();
}

Status Journal::write(const Place& place, std::string_view body, std::uint32_t mutations) const {
  if (place.is_written) return ok();
  return place.segment->file().write_durably(place.offset, header_of(place, body, mutations), body);
}

std::string Journal::header_of(const Place& place, std::string_view body,
                               std::uint32_t mutations) const {
  return encode_frame_header({.kind = FrameKind::batch,
                              .body_bytes = static_cast<std::uint32_t>(body.size()),
                              .mutations = mutations,
                              .batch = place.batch,
                              .synced_batch = place.synced_batch},
                             body, frame_seed(directory_, place.segment->number()));
}

Status Journal::end(const Place& place, Status written) {
  if (failed_) return *failed_;
  REPRISE_CHECK(place.batch == ended_batch_ + 1);
  REPRISE_TRY(keep_failure(std::move(written)));
  ended_batch_ = place.batch;
  if (!dirty_) note_synced(place.batch);
  return ok();
}

Status Journal::sync() {
  if (failed_) return *failed_;
  if (!dirty_) return ok();
  REPRISE_TRY(keep_failure(active_->file().sync()));
  dirty_ = false;
  note_synced(ended_batch_);
  return ok();
}

void Journal::note_synced(std::uint64_t batch) {
  synced_batch_ = batch;
  const Status marked = synced_mark_->set(batch);
  // Without room for the mark nothing is lost but the mark: the next one is tried again.
  if (!marked && marked.error().code == Errc::disk_full) return;
  // What was asked for is done; other trouble with the mark is the next call's.
  (void)keep_failure(marked).has_value();
}

Status Journal::rotate() {
  if (failed_) return *failed_;
  return keep_failure(begin_segment(0));
}

Status Journal::begin_segment(std::uint64_t capacity_min) {
  REPRISE_CHECK(!any_under_way());
  // Batches must reach the disk in their order, the buffered ones too.
  if (active_ && dirty_) REPRISE_TRY(active_->file().sync());
  dirty_ = false;
  synced_batch_ = last_batch_;
  auto taken = pool_.take(capacity_min);
  if (!taken) return taken.error();
  const SegmentPtr& next = *taken;
  const std::string header = encode_segment_header({.format = kFormatVersion,
                                                    .directory = directory_,
                                                    .number = next->number(),
                                                    .capacity = next->capacity(),
                                                    .first_batch = last_batch_ + 1,
                                                    .previous_end = active_ ? tail_ : 0});
  REPRISE_TRY(next->file().write(0, header, {}));
  // Before anything stands on it: a frame, the end of the segment before, or the release of that
  // one. So a header that cannot be read is damage where any of these is found.
  REPRISE_TRY(next->file().sync());
  if (active_) REPRISE_TRY(write_end());
  active_ = next;
  tail_ = kSegmentHeaderBytes;
  const std::lock_guard lock(mutex_);
  used_.push_back({active_, last_batch_ + 1});
  return ok();
}

// Not synced: the next segment's header says the same.
Status Journal::write_end() {
  const std::string frame = encode_frame_header(
      {.kind = FrameKind::end, .batch = last_batch_, .synced_batch = synced_batch_}, {},
      frame_seed(directory_, active_->number()));
  return active_->file().write(tail_, frame, {});
}

Status Journal::keep_failure(Status status) {
  if (!status) failed_ = status.error();
  return status;
}

void Journal::release(std::uint64_t batch) {
  std::vector<SegmentPtr> released;
  {
    const std::lock_guard lock(mutex_);
    // A segment ends where the next one begins.
    while (used_.size() > 1 && used_[1].first_batch <= batch + 1) {
      released.push_back(std::move(used_.front().segment));
      used_.pop_front();
    }
  }
  for (SegmentPtr& segment : released) pool_.give_back(std::move(segment));
}

std::uint64_t Journal::releasable_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i + 1 < used_.size(); ++i) total += used_[i].segment->capacity();
  return total;
}

std::uint64_t Journal::disk_bytes() const {
  std::uint64_t total = pool_.bytes();
  const std::lock_guard lock(mutex_);
  for (const auto& used : used_) total += used.segment->capacity();
  return total;
}

}  // namespace reprise::storage::journal
