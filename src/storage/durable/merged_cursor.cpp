#include "storage/durable/merged_cursor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::Slice;

Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

class BaseCursor final : public SeekableCursor {
 public:
  BaseCursor(const Database& base, const ::rocksdb::Snapshot* snapshot,
             ::rocksdb::ColumnFamilyHandle* family, std::string_view begin, std::string_view end)
      : base_(base), end_(end), end_slice_(end_) {
    ::rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.fill_cache = false;  // a walk through everything must not push out what is in use
    if (!end_.empty()) options.iterate_upper_bound = &end_slice_;
    // Chunks of the index are erased one by one. RocksDB 7.8 passes over a damaged first block of a
    // table without a word while it looks for erased ranges.
    options.ignore_range_deletions = family == base.index();
    iterator_.reset(base_->NewIterator(options, family));
    seek(begin);
  }
  bool valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return view(iterator_->key()); }
  std::string_view value() const override { return view(iterator_->value()); }
  void next() override { iterator_->Next(); }
  Status status() const override {
    return to_status(iterator_->status(), base_.options().directory);
  }
  void seek(std::string_view key) override { iterator_->Seek(slice(key)); }

 private:
  const Database& base_;
  const std::string end_;
  const Slice end_slice_;
  std::unique_ptr<::rocksdb::Iterator> iterator_;  // refers to end_slice_
};

class MergedCursor final : public Storage::Cursor {
 public:
  // `base` stands at `begin`.
  MergedCursor(std::unique_ptr<SeekableCursor> base, const OverlayView& overlays, Keyspace keyspace,
               std::string_view begin, std::string_view end)
      : overlays_(overlays),
        keyspace_(keyspace),
        end_(end),
        erased_ranges_(overlays.erased_ranges()),
        base_(std::move(base)) {
    std::erase_if(erased_ranges_, [&](const auto& range) { return range.keyspace != keyspace; });
    if (!end_.empty() && begin >= end_) return;
    seek_overlays(std::string(begin));
    settle();
  }

  bool valid() const override { return at_ != At::end; }
  std::string_view key() const override {
    return at_ == At::overlay ? std::string_view(change_->key) : base_->key();
  }
  std::string_view value() const override { return at_ == At::overlay ? value_ : base_->value(); }
  void next() override {
    if (at_ == At::overlay) {
      pass_change();
    } else {
      base_->next();
    }
    settle();
  }
  Status status() const override {
    if (failed_) return *failed_;
    return base_->status();
  }

 private:
  enum class At : std::uint8_t { end, overlay, base };

  void seek_overlays(const std::string& from) {
    change_ = overlays_.next(keyspace_, from);
    if (change_ && !end_.empty() && change_->key >= end_) change_.reset();
  }

  // Steps over the overlays' next word, and over what the base has under that key.
  void pass_change() {
    if (base_->valid() && base_->key() == change_->key) base_->next();
    seek_overlays(change_->key + '\0');
  }

  // Finds the next key that is there.
  void settle() {
    at_ = At::end;
    while (true) {
      if (!base_->valid() && !base_->status()) return;
      if (change_ && (!base_->valid() || change_->key <= base_->key())) {
        if (change_->found.erased) {
          pass_change();
          continue;
        }
        const auto value = values_.read(change_->found.place);
        if (value) {
          value_ = *value;
          at_ = At::overlay;
        } else {
          failed_ = value.error();
        }
        return;
      }
      if (!base_->valid()) return;
      if (const auto* range = hiding(base_->key())) {
        base_->seek(range->end);
        continue;
      }
      at_ = At::base;
      return;
    }
  }

  const Overlay::ErasedRange* hiding(std::string_view key) const {
    const auto found = std::ranges::find_if(
        erased_ranges_, [&](const auto& range) { return range.begin <= key && key < range.end; });
    return found == erased_ranges_.end() ? nullptr : &*found;
  }

  const OverlayView& overlays_;
  const Keyspace keyspace_;
  const std::string end_;
  std::vector<Overlay::ErasedRange> erased_ranges_;
  const std::unique_ptr<SeekableCursor> base_;
  std::optional<Overlay::Entry> change_;  // the overlays' next word at or after the current key
  ValueReader values_;
  std::string_view value_;  // of change_
  At at_ = At::end;
  std::optional<Error> failed_;
};

}  // namespace

std::unique_ptr<Storage::Cursor> make_merged_cursor(const Database& base,
                                                    const ::rocksdb::Snapshot* snapshot,
                                                    const OverlayView& overlays, Keyspace keyspace,
                                                    std::string_view begin, std::string_view end) {
  return std::make_unique<MergedCursor>(
      std::make_unique<BaseCursor>(base, snapshot, base.family(keyspace), begin, end), overlays,
      keyspace, begin, end);
}

std::unique_ptr<Storage::Cursor> make_merged_cursor(std::unique_ptr<SeekableCursor> base,
                                                    const OverlayView& overlays, Keyspace keyspace,
                                                    std::string_view begin, std::string_view end) {
  base->seek(begin);
  return std::make_unique<MergedCursor>(std::move(base), overlays, keyspace, begin, end);
}

std::unique_ptr<Storage::Cursor> make_base_cursor(const Database& base,
                                                  const ::rocksdb::Snapshot* snapshot,
                                                  ::rocksdb::ColumnFamilyHandle* family,
                                                  std::string_view begin, std::string_view end) {
  return std::make_unique<BaseCursor>(base, snapshot, family, begin, end);
}

}  // namespace reprise::storage
