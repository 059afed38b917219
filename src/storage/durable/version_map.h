// VersionMap: keys in byte order, each with the versions of its value; what an overlay is made of.
// A sorted list of small sorted chunks. Most keys name a job, so they come in rising order and are
// 12 bytes long: these are appended, are compared as two numbers and take no memory of their own.
// Threads: none; the owner locks. Const calls change nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage/journal/segment.h"

namespace reprise::storage {

// Where a value is.
struct ValuePlace {
  const journal::Segment* segment = nullptr;  // kept alive by the overlay that it is from
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

// A key, wherever its bytes are: the first sixteen as two numbers, the rest as they are.
struct OrderedKey {
  static constexpr std::size_t kFrontBytes = 16;

  OrderedKey(std::string_view key);  // NOLINT: it is the same key
  OrderedKey(const std::string& key) : OrderedKey(std::string_view(key)) {}  // NOLINT
  OrderedKey(const char* key) : OrderedKey(std::string_view(key)) {}         // NOLINT
  OrderedKey(std::uint64_t high_half, std::uint64_t low_half, std::string_view rest,
             std::size_t bytes)
      : high(high_half), low(low_half), tail(rest), size(bytes) {}

  std::uint64_t high;
  std::uint64_t low;
  std::string_view tail;
  std::size_t size;

  // Zeros behind a short one change nothing: where they make two keys alike, the shorter is first.
  friend std::strong_ordering operator<=>(const OrderedKey& a, const OrderedKey& b) {
    if (a.high != b.high) return a.high <=> b.high;
    if (a.low != b.low) return a.low <=> b.low;
    if (const auto tails = a.tail.compare(b.tail); tails != 0) return tails <=> 0;
    return a.size <=> b.size;
  }
  friend bool operator==(const OrderedKey& a, const OrderedKey& b) { return (a <=> b) == 0; }
};

class VersionMap {
 public:
  struct Version {
    std::uint64_t batch = 0;
    ValuePlace place;
    bool erased = false;
    bool is_new = false;       // nothing of this key is below
    Version* older = nullptr;  // owned by the map that holds this one
  };

 private:
  static constexpr std::size_t kChunkSlots = 64;

  struct Key {
    std::uint64_t high;
    std::uint64_t low;
    char* tail;  // owned by the map; null: there is none
    std::uint32_t size;

    OrderedKey view() const {
      const bool is_short = tail == nullptr;
      return {
          high, low,
          is_short ? std::string_view() : std::string_view(tail, size - OrderedKey::kFrontBytes),
          size};
    }
    std::string text() const;
    friend auto operator<=>(const Key& a, const OrderedKey& b) { return a.view() <=> b; }
    friend bool operator==(const Key& a, const OrderedKey& b) { return a.view() == b; }
  };
  struct Slot {
    Key key;
    Version version;
  };
  // Slots are moved as bytes when others are put between them.
  static_assert(std::is_trivially_copyable_v<Slot>);
  // Never empty, but for a moment. Jobs are mostly erased in the order in which they came, so what
  // is erased in front leaves a gap there, and nothing moves.
  class Chunk {
   public:
    Chunk() = default;
    Chunk(const Slot* begin, const Slot* end) : slots_(begin, end) {}

    const Slot* begin() const { return slots_.data() + gap_; }
    const Slot* end() const { return slots_.data() + slots_.size(); }
    std::size_t size() const { return slots_.size() - gap_; }
    bool empty() const { return size() == 0; }
    bool is_full() const { return size() == kChunkSlots; }
    Slot& operator[](std::size_t place) { return slots_[gap_ + place]; }
    const Slot& operator[](std::size_t place) const { return slots_[gap_ + place]; }
    const Slot& front() const { return slots_[gap_]; }
    const Slot& back() const { return slots_.back(); }
    void insert(std::size_t place, const Slot& slot);
    void erase(std::size_t place);
    void erase_from(std::size_t place) { slots_.resize(gap_ + place); }

   private:
    std::vector<Slot> slots_;
    std::size_t gap_ = 0;
  };

 public:
  VersionMap() = default;
  ~VersionMap() { clear(); }
  VersionMap(const VersionMap&) = delete;
  VersionMap& operator=(const VersionMap&) = delete;

  // Valid until the map is changed.
  class Iterator {
   public:
    std::string key() const { return slot().key.text(); }
    Version& version() const { return slot().version; }
    bool is_at(const OrderedKey& key) const { return slot().key == key; }
    bool is_before(const OrderedKey& key) const { return slot().key < key; }
    Iterator& operator++();
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    friend class VersionMap;
    Iterator(const VersionMap* map, std::size_t chunk, std::size_t place)
        : map_(map), chunk_(chunk), place_(place) {}
    Slot& slot() const { return (*map_->chunks_[chunk_])[place_]; }

    const VersionMap* map_;
    std::size_t chunk_;
    std::size_t place_;
  };
  Iterator begin() const { return {this, 0, 0}; }
  Iterator end() const { return {this, chunks_.size(), 0}; }
  // The first that is not before the key.
  Iterator lower_bound(const OrderedKey& key) const;
  Iterator find(const OrderedKey& key) const;
  // The same as lower_bound(), and quicker for a key at or behind the one that was sought before:
  // a batch changes neighbours one after the other.
  Iterator seek(const OrderedKey& key);

  // The key is not in the map, and `at` is its lower bound.
  void insert(Iterator at, const OrderedKey& key, Version version);
  // The same for a key that is behind all others.
  bool is_behind_all(const OrderedKey& key) const;
  void append(const OrderedKey& key, Version version) { insert(end(), key, version); }
  // Its older versions go with it. Where the next one is then.
  Iterator erase(Iterator at);
  void clear();

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  static void free_older(Version& version);

 private:
  static Key make_key(const OrderedKey& key);
  static void free_key(Key& key);
  // Makes room in a full chunk; where `at` is then.
  Iterator split(Iterator at);

  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> fronts_;  // of each chunk's first key
  std::size_t size_ = 0;
  // Where the key was that was sought last, if nothing has moved since.
  std::size_t near_chunk_ = 0;
  std::size_t near_place_ = 0;
};

}  // namespace reprise::storage
