#include "storage/durable/version_map.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"

namespace reprise::storage {
namespace {

constexpr std::size_t kHalf = sizeof(std::uint64_t);

}  // namespace

OrderedKey::OrderedKey(std::string_view key) : size(key.size()) {
  std::array<char, kFrontBytes> front{};
  key.copy(front.data(), kFrontBytes);
  high = read_big_endian<std::uint64_t>(front.data());
  low = read_big_endian<std::uint64_t>(front.data() + kHalf);
  if (key.size() > kFrontBytes) tail = key.substr(kFrontBytes);
}

std::string VersionMap::Key::text() const {
  std::array<char, OrderedKey::kFrontBytes> front;
  write_big_endian(front.data(), high);
  write_big_endian(front.data() + kHalf, low);
  if (tail == nullptr) return {front.data(), size};
  std::string text;
  text.reserve(size);
  text.append(front.data(), front.size());
  text.append(tail, size - front.size());
  return text;
}

VersionMap::Key VersionMap::make_key(const OrderedKey& key) {
  Key made{.high = key.high,
           .low = key.low,
           .tail = nullptr,
           .size = static_cast<std::uint32_t>(key.size)};
  if (!key.tail.empty()) {
    made.tail = new char[key.tail.size()];
    std::memcpy(made.tail, key.tail.data(), key.tail.size());
  }
  return made;
}

void VersionMap::free_key(Key& key) { delete[] key.tail; }

void VersionMap::free_older(Version& version) {
  Version* next = std::exchange(version.older, nullptr);
  while (next != nullptr) {
    const std::unique_ptr<Version> gone(next);
    next = gone->older;
  }
}

VersionMap::Iterator& VersionMap::Iterator::operator++() {
  if (++place_ == map_->chunks_[chunk_]->size()) {
    ++chunk_;
    place_ = 0;
  }
  return *this;
}

VersionMap::Iterator VersionMap::lower_bound(const OrderedKey& key) const {
  const std::pair front{key.high, key.low};
  // The last chunk that begins at or before the key may have it; several may begin alike.
  auto after = static_cast<std::size_t>(std::ranges::upper_bound(fronts_, front) - fronts_.begin());
  while (after > 0 && fronts_[after - 1] == front && chunks_[after - 1]->front().key > key) {
    --after;
  }
  if (after == 0) return begin();
  const Chunk& chunk = *chunks_[after - 1];
  const auto found = std::partition_point(chunk.begin(), chunk.end(),
                                          [&](const Slot& slot) { return slot.key < key; });
  if (found == chunk.end()) return {this, after, 0};
  return {this, after - 1, static_cast<std::size_t>(found - chunk.begin())};
}

VersionMap::Iterator VersionMap::seek(const OrderedKey& key) {
  if (near_chunk_ < chunks_.size()) {
    const Chunk& chunk = *chunks_[near_chunk_];
    const std::size_t end = std::min(near_place_ + 2, chunk.size());
    for (std::size_t place = near_place_; place < end; ++place) {
      if (!(chunk[place].key == key)) continue;
      near_place_ = place;
      return {this, near_chunk_, place};
    }
  }
  const Iterator found = lower_bound(key);
  near_chunk_ = found.chunk_;
  near_place_ = found.place_;
  return found;
}

VersionMap::Iterator VersionMap::find(const OrderedKey& key) const {
  const Iterator at = lower_bound(key);
  return at != end() && at.is_at(key) ? at : end();
}

bool VersionMap::is_behind_all(const OrderedKey& key) const {
  return empty() || chunks_.back()->back().key < key;
}

void VersionMap::Chunk::insert(std::size_t place, const Slot& slot) {
  if (place == 0 && gap_ > 0) {
    slots_[--gap_] = slot;
    return;
  }
  if (gap_ > 0 && slots_.size() == slots_.capacity()) {
    slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(gap_));
    gap_ = 0;
  }
  slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(gap_ + place), slot);
}

void VersionMap::Chunk::erase(std::size_t place) {
  if (place == 0) {
    ++gap_;
  } else {
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(gap_ + place));
  }
}

void VersionMap::insert(Iterator at, const OrderedKey& key, Version version) {
  const bool is_last = at == end();
  if (is_last && (chunks_.empty() || chunks_.back()->is_full())) {
    chunks_.push_back(std::make_unique<Chunk>());
    fronts_.emplace_back();
  }
  if (is_last) {
    at = {this, chunks_.size() - 1, chunks_.back()->size()};
  } else if (chunks_[at.chunk_]->is_full()) {
    at = split(at);
  }
  Chunk& chunk = *chunks_[at.chunk_];
  const Key made = make_key(key);
  chunk.insert(at.place_, {made, version});
  if (at.place_ == 0) fronts_[at.chunk_] = {made.high, made.low};
  ++size_;
}

VersionMap::Iterator VersionMap::split(Iterator at) {
  constexpr std::size_t kKept = kChunkSlots / 2;
  Chunk& chunk = *chunks_[at.chunk_];
  auto next = std::make_unique<Chunk>(chunk.begin() + kKept, chunk.end());
  chunk.erase_from(kKept);
  const auto place = static_cast<std::ptrdiff_t>(at.chunk_) + 1;
  fronts_.insert(fronts_.begin() + place, {next->front().key.high, next->front().key.low});
  chunks_.insert(chunks_.begin() + place, std::move(next));
  if (at.place_ <= kKept) return at;
  return {this, at.chunk_ + 1, at.place_ - kKept};
}

VersionMap::Iterator VersionMap::erase(Iterator at) {
  Chunk& chunk = *chunks_[at.chunk_];
  free_key(chunk[at.place_].key);
  free_older(chunk[at.place_].version);
  chunk.erase(at.place_);
  --size_;
  if (chunk.empty()) {
    const auto place = static_cast<std::ptrdiff_t>(at.chunk_);
    chunks_.erase(chunks_.begin() + place);
    fronts_.erase(fronts_.begin() + place);
    return {this, at.chunk_, 0};
  }
  if (at.place_ == 0) fronts_[at.chunk_] = {chunk.front().key.high, chunk.front().key.low};
  if (at.place_ == chunk.size()) return {this, at.chunk_ + 1, 0};
  return at;
}

void VersionMap::clear() {
  for (const auto& chunk : chunks_) {
    for (std::size_t place = 0; place < chunk->size(); ++place) {
      free_key((*chunk)[place].key);
      free_older((*chunk)[place].version);
    }
  }
  chunks_.clear();
  fronts_.clear();
  size_ = 0;
}

}  // namespace reprise::storage
