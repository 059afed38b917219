#include "storage/durable/checkpoint.h"

#include <rocksdb/snapshot.h>

#include <map>
#include <utility>

#include "base/check.h"
#include "storage/durable/base_chunks.h"
#include "storage/durable/dead_tables.h"
#include "storage/durable/job_index.h"
#include "storage/durable/overlay_view.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/rocksdb/status.h"
#include "storage/rocksdb/table_ranges.h"
#include "storage/rocksdb/table_writer.h"
#include "storage/rocksdb/tuning.h"

namespace reprise::storage {
namespace {

class Checkpoint {
 public:
  Checkpoint(Database& base, const std::string& directory, const journal::DirectoryId& id,
             std::shared_ptr<const Overlay> overlay, Pace& pace)
      : base_(base),
        id_(id),
        overlay_(std::move(overlay)),
        changes_({overlay_}, kLatestView, nullptr),
        pace_(pace),
        tables_(base, directory, pace) {}

  Status run(const std::function<bool()>& nobody_looks_back) {
    pace_.begin(overlay_->bytes());
    REPRISE_TRY(drop_dead_tables(base_, *overlay_, nobody_looks_back));
    for (const Keyspace keyspace : kAllKeyspaces) {
      REPRISE_TRY(keyspace == Keyspace::meta ? write_meta() : write(keyspace));
    }
    REPRISE_TRY(write_index());
    REPRISE_TRY(erase_ranges());
    return tables_.ingest();
  }

 private:
  Status write(Keyspace keyspace) {
    auto* family = base_.family(keyspace);
    const TableRanges below(base_, family);
    Status written = ok();
    overlay_->for_each(keyspace, [&](const std::string& key, const Overlay::Found& found) {
      if (found.erased) {
        // Without a table that may hold it there is nothing to erase: of a job that was leased and
        // acked since the last checkpoint, its state; of a table that was dropped, everything.
        written = below.may_hold(key) ? erase(family, key, found) : ok();
      } else {
        written = put(keyspace, key, found);
      }
      pace_.advance(Overlay::bytes_of(key.size(), found.place));
      return written.has_value();
    });
    return written;
  }

  Status put(Keyspace keyspace, const std::string& key, const Overlay::Found& found) {
    const auto value = values_.read(found.place);
    if (!value) return value.error();
    if (keyspace == Keyspace::jobs) note_outline(key, *value);
    return tables_.put(base_.family(keyspace), key, *value);
  }

  // The index wants it too, and a record should be read once.
  void note_outline(const std::string& key, std::string_view record) {
    const auto job = parse_job_key(key);
    auto outline = decode_job_outline(record);
    if (job && outline) outlines_.add(*job, *std::move(outline));
  }

  Status erase(::rocksdb::ColumnFamilyHandle* family, const std::string& key,
               const Overlay::Found& found) {
    return found.is_new ? ok() : tables_.erase(family, key);
  }

  // With our own records among the others.
  Status write_meta() {
    std::map<std::string, Overlay::Found, std::less<>> entries;
    overlay_->for_each(Keyspace::meta, [&](const std::string& key, const Overlay::Found& found) {
      entries.emplace(key, found);
      return true;
    });
    // These two are ours, whatever a batch said about their keys.
    entries[std::string(kCheckpointKey)];
    entries[std::string(kFormatKey)];
    auto* family = base_.family(Keyspace::meta);
    for (const auto& [key, found] : entries) {
      if (key == kCheckpointKey) {
        REPRISE_TRY(tables_.put(family, key, encode_checkpoint(record())));
      } else if (key == kFormatKey) {
        REPRISE_TRY(tables_.put(family, key, encode_format_version(kFormatVersion)));
      } else {
        REPRISE_TRY(found.erased ? erase(family, key, found) : put(Keyspace::meta, key, found));
      }
    }
    return ok();
  }

  CheckpointRecord record() const {
    return {.directory = id_,
            .covered_batch = overlay_->last_batch(),
            .seq_highest = overlay_->seq_highest()};
  }

  Status write_index() {
    const BaseChunks chunks(base_, nullptr);
    return update_chunks(chunks, changes_, outlines_, [this](ChunkKey key, const JobChunk& chunk) {
      const std::string encoded = encode_chunk_key(key);
      return chunk.empty() ? tables_.erase(base_.index(), encoded)
                           : tables_.put(base_.index(), encoded, chunk.encode());
    });
  }

  // Ahead of the rest and not in one step with it, which is harmless: the journal has the erasure,
  // synced, and what came into the range behind it is written after this.
  Status erase_ranges() {
    for (const auto& range : overlay_->erased_ranges()) {
      auto* family = base_.family(range.keyspace);
      auto status = base_->DeleteRange(write_without_log(), family, range.begin, range.end);
      if (status.ok()) status = base_->Flush(::rocksdb::FlushOptions(), family);
      REPRISE_TRY(to_status(status, base_.options().directory));
    }
    return ok();
  }

  Database& base_;
  const journal::DirectoryId& id_;
  const std::shared_ptr<const Overlay> overlay_;
  const OverlayView changes_;
  Pace& pace_;
  TableWriter tables_;
  ValueReader values_;
  KnownOutlines outlines_;  // of the records that were written
};

}  // namespace

Status write_first_checkpoint(Database& base, const std::string& directory,
                              const journal::DirectoryId& id) {
  TableWriter tables(base, directory);
  auto* meta = base.family(Keyspace::meta);
  REPRISE_TRY(tables.put(meta, kCheckpointKey, encode_checkpoint({.directory = id})));
  REPRISE_TRY(tables.put(meta, kFormatKey, encode_format_version(kFormatVersion)));
  // Under a snapshot it gets sequence number 1. Otherwise the database would stay at 0 for a while,
  // and beside a snapshot of number 0 a compaction drops keys (facebook/rocksdb#13155).
  const ::rocksdb::ManagedSnapshot of_number_0(base.get());
  REPRISE_TRY(tables.ingest());
  REPRISE_CHECK(base->GetLatestSequenceNumber() > 0);
  return ok();
}

Status write_checkpoint(Database& base, const std::string& directory,
                        const journal::DirectoryId& id, std::shared_ptr<const Overlay> overlay,
                        Pace& pace, const std::function<bool()>& nobody_looks_back) {
  return Checkpoint(base, directory, id, std::move(overlay), pace).run(nobody_looks_back);
}

}  // namespace reprise::storage
