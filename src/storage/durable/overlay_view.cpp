#include "storage/durable/overlay_view.h"

#include <algorithm>
#include <utility>

namespace reprise::storage {
namespace {

constexpr std::uint64_t kWindowBytes = 256U << 10;

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
    const std::uint64_t wanted = std::max(length, kWindowBytes);
    const std::uint64_t there = place.segment->capacity() - place.offset;
    segment_ = nullptr;
    REPRISE_TRY(place.segment->read(place.offset, std::min(wanted, there), window_));
    segment_ = place.segment;
    begin_ = place.offset;
  }
  return std::string_view(window_).substr(place.offset - begin_, length);
}

Result<std::string> read_value(const ValuePlace& place) {
  std::string value;
  if (place.length != 0) REPRISE_TRY(place.segment->read(place.offset, place.length, value));
  return value;
}

}  // namespace reprise::storage
