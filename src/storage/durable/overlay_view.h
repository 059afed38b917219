// OverlayView: what the overlays on top of the base say at one moment, as one. The newest word
// about a key counts. Threads: any; it takes the lock that guards the overlays, if it was given
// one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/durable/overlay.h"

namespace reprise::storage {

class OverlayView {
 public:
  using Layers = std::vector<std::shared_ptr<const Overlay>>;  // newest first
  // `mutex` may be null when none of the layers changes any more.
  OverlayView(Layers layers, std::uint64_t view, std::shared_mutex* mutex)
      : layers_(std::move(layers)), view_(view), mutex_(mutex) {}

  // nullopt: nothing; ask the base.
  std::optional<Overlay::Found> find(Keyspace keyspace, std::string_view key) const;
  // The first key at or after `from` that has something to say.
  std::optional<Overlay::Entry> next(Keyspace keyspace, std::string_view from) const;
  // All of them from `begin` to before `end`, in order.
  std::vector<Overlay::Entry> entries(Keyspace keyspace, std::string_view begin,
                                      std::string_view end) const;
  // The end of an erased range that hides this key of the base; nullopt when none does.
  std::optional<std::string> hidden_until(Keyspace keyspace, std::string_view key) const;
  std::vector<Overlay::ErasedRange> erased_ranges() const;

 private:
  std::shared_lock<std::shared_mutex> lock() const {
    return mutex_ ? std::shared_lock(*mutex_) : std::shared_lock<std::shared_mutex>();
  }

  const Layers layers_;
  const std::uint64_t view_;
  std::shared_mutex* const mutex_;
};

// Reads values out of the journal. Values that stand close together cost one read.
// The overlay that a place is from must be alive.
class ValueReader {
 public:
  // Valid until the next call.
  Result<std::string_view> read(const ValuePlace& place) { return read(place, place.length); }
  // Its first bytes, at most `length`.
  Result<std::string_view> read(const ValuePlace& place, std::uint64_t length);

 private:
  // At first, and at most. Jobs of one queue mostly stand side by side; those of a thousand are far
  // from each other, and what is read beyond one of them is of no use.
  static constexpr std::uint64_t kAheadMin = 4U << 10;
  static constexpr std::uint64_t kAheadMax = 256U << 10;

  std::uint64_t bytes_to_read(const ValuePlace& place, std::uint64_t length);
  Status read_window(const ValuePlace& place, std::uint64_t bytes);

  // What was read last: these bytes of that segment; null: nothing.
  const journal::Segment* segment_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint64_t window_bytes_ = 0;
  std::unique_ptr<char[]> memory_;
  std::uint64_t memory_bytes_ = 0;
  // What is read beyond a value: more and more, as long as it is used.
  std::uint64_t ahead_ = kAheadMin;
};

// One value, by itself.
Result<std::string> read_value(const ValuePlace& place);

}  // namespace reprise::storage
