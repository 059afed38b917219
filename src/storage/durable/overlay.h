// Overlay: the net effect of the batches since the last checkpoint, ordered. A job that is pushed,
// leased and acked in between leaves nothing here, and so never reaches the base.
// Keys are in memory; values stay in the journal, and the overlay remembers where.
//
// Views: a reader names the last batch that it wants to see. What it may need of older versions is
// kept while it is registered, and only then.
// Threads: none; the owner locks. Once frozen nothing changes it any more, and anybody may read.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "storage/batch.h"
#include "storage/durable/version_map.h"
#include "storage/journal/segment.h"
#include "storage/keyspace.h"

namespace reprise::storage {

class Overlay {
 public:
  // What is below has every batch up to `last_batch`, and no job with a higher seq than
  // `seq_floor`: what is put under a higher one is known to be new, so that its erasure needs no
  // trace.
  Overlay(std::uint64_t last_batch, Seq seq_floor)
      : seq_floor_(seq_floor), seq_highest_(seq_floor), last_batch_(last_batch) {}

  struct AppliedBatch {
    std::uint64_t number{};
    journal::SegmentPtr segment;
    std::uint64_t body_offset{};
  };
  // False when the bytes are not whole mutations; the overlay is of no use then.
  [[nodiscard]] bool apply(const AppliedBatch& batch, std::string_view body, std::size_t mutations);

  // What this overlay says about a key at a view.
  struct Found {
    bool erased = false;
    bool is_new = false;  // nothing of this key is below
    ValuePlace place{};
  };
  // nullopt: nothing; ask what is below.
  std::optional<Found> find(Keyspace keyspace, std::string_view key, std::uint64_t view) const;

  // The first key at or after `from` that has something to say.
  struct Entry {
    std::string key;
    Found found;
  };
  std::optional<Entry> next(Keyspace keyspace, std::string_view from, std::uint64_t view) const;

  // All of them from `begin` to before `end`, in order.
  std::vector<Entry> entries(Keyspace keyspace, std::string_view begin, std::string_view end,
                             std::uint64_t view) const;

  // All of a keyspace in order, at the latest view, until `visit` returns false.
  void for_each(Keyspace keyspace,
                const std::function<bool(const std::string& key, const Found&)>& visit) const;

  struct ErasedRange {
    Keyspace keyspace{};
    std::string begin;
    std::string end;
    std::uint64_t batch{};
  };
  const std::vector<ErasedRange>& erased_ranges() const { return erased_ranges_; }
  // The range that hides this key of what is below, if one does.
  const ErasedRange* hidden_by(Keyspace keyspace, std::string_view key, std::uint64_t view) const;

  // Readers that may still ask for what is there now.
  void add_view(std::uint64_t view) { views_.insert(view); }
  void remove_view(std::uint64_t view) { views_.erase(views_.find(view)); }

  bool empty() const { return segments_.empty(); }
  std::uint64_t last_batch() const { return last_batch_; }
  Seq seq_highest() const { return seq_highest_; }
  std::size_t entries(Keyspace keyspace) const { return of(keyspace).size(); }
  // Of memory and of values in the journal, about: what a checkpoint would have to write.
  std::uint64_t bytes() const { return bytes_; }
  // Of one entry.
  static std::uint64_t bytes_of(std::size_t key_bytes, const ValuePlace& place);

 private:
  class Applier;

  using Version = VersionMap::Version;

  VersionMap& of(Keyspace keyspace) { return maps_[static_cast<std::size_t>(keyspace)]; }
  const VersionMap& of(Keyspace keyspace) const {
    return maps_[static_cast<std::size_t>(keyspace)];
  }
  static const Version* visible(const Version& latest, std::uint64_t view);
  bool is_new_key(Keyspace keyspace, std::string_view key) const;
  static Found found(const Version& version);
  bool viewed(const Version& version) const;
  bool unviewed(const Version& version) const;
  void replace(Version& version, Version by);
  void put(Keyspace keyspace, std::string_view key, ValuePlace place, std::uint64_t batch);
  void erase(Keyspace keyspace, std::string_view key, std::uint64_t batch);
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end,
                   std::uint64_t batch);

  const Seq seq_floor_;
  Seq seq_highest_;
  std::array<VersionMap, kAllKeyspaces.size()> maps_;
  std::vector<ErasedRange> erased_ranges_;
  std::vector<journal::SegmentPtr> segments_;  // that values are in
  std::multiset<std::uint64_t> views_;
  std::uint64_t last_batch_;
  std::uint64_t bytes_ = 0;
};

inline constexpr std::uint64_t kLatestView = UINT64_MAX;

}  // namespace reprise::storage
