#include "storage/durable/overlay_view.h"

#include <algorithm>
#include <utility>

namespace reprise::storage {
namespace {

// Read beyond a value at first, and at most. Jobs of one queue mostly stand side by side; those of
// a thousand are far from each other, and what is read beyond one of them is of no use.
constexpr std::uint64_t kAheadMin = 4U << 10;
constexpr std::uint64_t kAheadMax = 256U << 10;

}  // namespace

std::optional<Overlay::Found> OverlayView::find(Keyspace keyspace, std::string_view key) const {
  const auto locked = lock();
  for (const auto& layer : layers_) {
    if (const auto found = layer->find(keyspace, key, view_)) return found;
  }
  return std::nullopt;
}

std::optional<Overlay::Entry> OverlayView::next(Keyspace keyspace, std::string_view from) const {
  const auto locked = lock();
  std::optional<Overlay::Entry> first;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto entry = layers_[i]->next(keyspace, from, view_);
    if (!entry || (first && first->key <= entry->key)) continue;
    for (std::size_t above = 0; above < i; ++above) {
      if (layers_[above]->hidden_by(keyspace, entry->key, view_) != nullptr) {
        entry->found = {.erased = true};
      }
    }
    first = std::move(entry);
  }
  return first;
}

std::vector<Overlay::Entry> OverlayView::entries(Keyspace keyspace, std::string_view begin,
                                                 std::string_view end) const {
  if (layers_.size() == 1) {
    const auto locked = lock();
    return layers_.front()->entries(keyspace, begin, end, view_);
  }
  std::vector<Overlay::Entry> entries;
  for (std::string from(begin); auto entry = next(keyspace, from);) {
    if (entry->key >= end) break;
    from = entry->key + '\0';
    entries.push_back(*std::move(entry));
  }
  return entries;
}

std::optional<std::string> OverlayView::hidden_until(Keyspace keyspace,
                                                     std::string_view key) const {
  const auto locked = lock();
  for (const auto& layer : layers_) {
    if (const auto* range = layer->hidden_by(keyspace, key, view_)) return range->end;
  }
  return std::nullopt;
}

std::vector<Overlay::ErasedRange> OverlayView::erased_ranges() const {
  const auto locked = lock();
  std::vector<Overlay::ErasedRange> ranges;
  for (const auto& layer : layers_) {
    std::ranges::copy_if(layer->erased_ranges(), std::back_inserter(ranges),
                         [this](const auto& range) { return range.batch <= view_; });
  }
  return ranges;
}

Result<std::string_view> ValueReader::read(const ValuePlace& place, std::uint64_t length) {
  length = std::min<std::uint64_t>(length, place.length);
  if (length == 0) return std::string_view();
  const bool inside = place.segment == segment_ && place.offset >= begin_ &&
                      place.offset + length <= begin_ + window_.size();
  if (!inside) {
    const std::uint64_t bytes = bytes_to_read(place, length);
    segment_ = nullptr;
    REPRISE_TRY(read_window(place, bytes));
    segment_ = place.segment;
    begin_ = place.offset;
  }
  used_ += length;
  return window_.substr(place.offset - begin_, length);
}

Status ValueReader::read_window(const ValuePlace& place, std::uint64_t bytes) {
  // Where most of a window is passed over, the values of other queues or keyspaces stand between:
  // the same bytes are read again for those, and are better in the page cache then.
  const bool most_was_used = 2 * used_ > window_.size();
  window_ = {};
  used_ = 0;
  if (pieces_ != nullptr && most_was_used) {
    if (const auto piece = pieces_->read(*place.segment, place.offset, bytes)) {
      window_ = *piece;
      return ok();
    }
  }
  if (bytes > read_bytes_) {
    read_ = std::make_unique_for_overwrite<char[]>(bytes);
    read_bytes_ = bytes;
  }
  REPRISE_TRY(place.segment->read(place.offset, bytes, read_.get()));
  window_ = {read_.get(), bytes};
  return ok();
}

std::uint64_t ValueReader::bytes_to_read(const ValuePlace& place, std::uint64_t length) {
  const std::uint64_t end = begin_ + window_.size();
  const bool goes_on =
      place.segment == segment_ && place.offset >= begin_ && place.offset <= end + kAheadMax;
  ahead_ = goes_on ? std::min(2 * ahead_, kAheadMax) : kAheadMin;
  return std::min(length + ahead_, place.segment->capacity() - place.offset);
}

Result<std::string> read_value(const ValuePlace& place) {
  std::string value;
  if (place.length != 0) REPRISE_TRY(place.segment->read(place.offset, place.length, value));
  return value;
}

}  // namespace reprise::storage
