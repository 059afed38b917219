#include "support/journal_disk.h"

#include <utility>

#include "base/check.h"

namespace reprise::test {

using storage::journal::Contents;
using storage::journal::Journal;
using storage::journal::ReplayedBatch;

storage::journal::SegmentPoolOptions JournalDisk::pool_options() {
  return {.files = disk_.shared_files(),
          .on_real_disk = false,
          .directory = kDirectory,
          .segment_bytes_min = options_.segment_bytes_min,
          .segment_bytes_max = options_.segment_bytes_max,
          .background = options_.background};
}

JournalImage JournalDisk::image() {
  JournalImage image{disk_.image(kDirectory), std::nullopt};
  if (auto mark = image.extract(kMarkName)) image.synced_mark = std::move(mark.mapped());
  return image;
}

Result<Contents> JournalDisk::recover(std::uint64_t covered_batch) {
  bodies_.clear();
  notices_.clear();
  first_number_ = 0;
  const auto replay = [this](const ReplayedBatch& batch) {
    if (bodies_.empty()) first_number_ = batch.number;
    REPRISE_CHECK(batch.number == first_number_ + bodies_.size());
    bodies_.emplace_back(batch.body);
    return ok();
  };
  return storage::journal::recover(
      {.files = disk_.shared_files(),
       .on_real_disk = false,
       .directory = kDirectory,
       .id = kId,
       .covered_batch = covered_batch,
       .replay = replay,
       .notice = [this](std::string_view text) { notices_.emplace_back(text); }});
}

Status JournalDisk::open(std::uint64_t covered_batch) {
  Contents contents;
  if (!is_new_) {
    auto recovered = recover(covered_batch);
    if (!recovered) return recovered.error();
    contents = *std::move(recovered);
  }
  auto journal = Journal::start(pool_options(), kId, std::move(contents));
  if (!journal) return journal.error();
  journal_ = *std::move(journal);
  is_new_ = false;
  return ok();
}

Result<storage::journal::Journal::Place> JournalDisk::append(std::string_view body,
                                                             std::uint32_t mutations,
                                                             bool durably) {
  auto place = journal_->place(body, mutations, durably);
  if (place) REPRISE_TRY(journal_->end(*place, journal_->write(*place, body, mutations)));
  return place;
}

}  // namespace reprise::test
