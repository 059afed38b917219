#include "storage/durable/overlay_view.h"

#include <algorithm>
#include <utility>

namespace reprise::storage {
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
                      place.offset + length <= begin_ + window_bytes_;
  if (!inside) REPRISE_TRY(read_window(place, bytes_to_read(place, length)));
  return std::string_view(memory_.get() + (place.offset - begin_), length);
}

Status ValueReader::read_window(const ValuePlace& place, std::uint64_t bytes) {
  segment_ = nullptr;
  if (bytes > memory_bytes_) {
    memory_ = std::make_unique_for_overwrite<char[]>(bytes);
    memory_bytes_ = bytes;
  }
  REPRISE_TRY(place.segment->read(place.offset, bytes, memory_.get()));
  segment_ = place.segment;
  begin_ = place.offset;
  window_bytes_ = bytes;
  return ok();
}

std::uint64_t ValueReader::bytes_to_read(const ValuePlace& place, std::uint64_t length) {
  const bool goes_on = place.segment == segment_ && place.offset >= begin_ &&
                       place.offset <= begin_ + window_bytes_ + kAheadMax;
  const bool goes_on_in_the_next = place.segment != segment_ && place.offset < kAheadMin;
  if (goes_on) {
    ahead_ = std::min(2 * ahead_, kAheadMax);
  } else if (!goes_on_in_the_next) {
    ahead_ = kAheadMin;
  }
  return std::min(length + ahead_, place.segment->capacity() - place.offset);
}

Result<std::string> read_value(const ValuePlace& place) {
  std::string value;
  if (place.length != 0) REPRISE_TRY(place.segment->read(place.offset, place.length, value));
  return value;
}

}  // namespace reprise::storage
