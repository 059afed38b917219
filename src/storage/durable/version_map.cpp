#include "storage/durable/version_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace reprise::storage {
namespace {

std::uint64_t big_endian(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t number = 0;
  std::memcpy(&number, bytes, sizeof(number));
  return __builtin_bswap64(number);
}

void append_big_endian(std::string& out, std::uint64_t number) {
  number = __builtin_bswap64(number);
  std::array<char, sizeof(number)> bytes{};
  std::memcpy(bytes.data(), &number, sizeof(number));
  out.append(bytes.data(), bytes.size());
}

}  // namespace

OrderedKey::OrderedKey(std::string_view key) : size(key.size()) {
  std::array<char, kFrontBytes> front{};
  std::ranges::copy(key.substr(0, kFrontBytes), front.begin());
  high = big_endian(front.data());
  low = big_endian(front.data() + sizeof(high));
  if (key.size() > kFrontBytes) tail = key.substr(kFrontBytes);
}

std::string VersionMap::Key::text() const {
  constexpr std::size_t kFrontBytes = OrderedKey::kFrontBytes;
  std::string text;
  text.reserve(std::max<std::size_t>(size, kFrontBytes));
  append_big_endian(text, high);
  append_big_endian(text, low);
  if (tail == nullptr) {
    text.resize(size);
  } else {
    text.append(tail, size - kFrontBytes);
  }
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

VersionMap::Iterator VersionMap::find(const OrderedKey& key) const {
  const Iterator at = lower_bound(key);
  return at != end() && at.is_at(key) ? at : end();
}

bool VersionMap::is_behind_all(const OrderedKey& key) const {
  return empty() || chunks_.back()->back().key < key;
}

void VersionMap::insert(Iterator at, const OrderedKey& key, Version version) {
  const bool is_last = at == end();
  if (is_last && (chunks_.empty() || chunks_.back()->size() == kChunkSlots)) {
    chunks_.push_back(std::make_unique<Chunk>());
    fronts_.emplace_back();
  }
  if (is_last) {
    at = {this, chunks_.size() - 1, chunks_.back()->size()};
  } else if (chunks_[at.chunk_]->size() == kChunkSlots) {
    at = split(at);
  }
  Chunk& chunk = *chunks_[at.chunk_];
  const Key made = make_key(key);
  chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(at.place_), {made, version});
  if (at.place_ == 0) fronts_[at.chunk_] = {made.high, made.low};
  ++size_;
}

VersionMap::Iterator VersionMap::split(Iterator at) {
  constexpr std::size_t kKept = kChunkSlots / 2;
  Chunk& chunk = *chunks_[at.chunk_];
  const auto second_half = chunk.begin() + kKept;
  auto next = std::make_unique<Chunk>(second_half, chunk.end());
  chunk.erase(second_half, chunk.end());
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
  chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(at.place_));
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
    for (Slot& slot : *chunk) {
      free_key(slot.key);
      free_older(slot.version);
    }
  }
  chunks_.clear();
  fronts_.clear();
  size_ = 0;
}

}  // namespace reprise::storage
