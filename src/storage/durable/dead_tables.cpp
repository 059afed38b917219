#include "storage/durable/dead_tables.h"

#include <rocksdb/convenience.h>

#include <optional>
#include <string>
#include <vector>

#include "storage/durable/base_chunks.h"
#include "storage/durable/job_index.h"
#include "storage/keys.h"
#include "storage/rocksdb/status.h"
#include "storage/rocksdb/table_ranges.h"

namespace reprise::storage {
namespace {

using Table = TableRanges::Table;
using ::rocksdb::Slice;

class DeadTables {
 public:
  DeadTables(Database& base, const Overlay& overlay)
      : base_(base), overlay_(overlay), jobs_(base.family(Keyspace::jobs)) {}

  Status drop(const std::function<bool()>& nobody_looks_back) {
    // Only a table that stands alone: another one over the same keys might hold what tombstones in
    // this one hide.
    std::vector<Table> dead;
    for (Table& table : TableRanges(base_, jobs_).alone()) {
      if (is_dead(table)) dead.push_back(std::move(table));
    }
    if (dead.empty() || !nobody_looks_back()) return ok();
    std::vector<Slice> ends;
    ends.reserve(2 * dead.size());
    std::vector<::rocksdb::RangePtr> ranges;
    for (const Table& table : dead) {
      const Slice* const first = &ends.emplace_back(table.first);
      const Slice* const last = &ends.emplace_back(table.last);
      ranges.emplace_back(first, last);
    }
    // What a compaction is reading stays, and so does what it has made of such a table together
    // with its neighbours.
    constexpr bool kWithLastKey = true;
    const auto status = ::rocksdb::DeleteFilesInRanges(base_.get(), jobs_, ranges.data(),
                                                       ranges.size(), kWithLastKey);
    return to_status(status, base_.options().directory);
  }

 private:
  bool is_dead(const Table& table) const {
    if (table.level == 0) return false;  // RocksDB drops none of these
    const auto first = parse_job_key(table.first);
    const auto last = parse_job_key(table.last);
    if (!first || !last) return false;
    // Most tables are decided here.
    if (!is_erased(*first) || !is_erased(*last)) return false;
    const auto erased = count_if_all_erased(*first, *last);
    return erased && holds_just(table, *erased);
  }

  bool is_erased(JobKey job) const {
    const auto found = overlay_.find(Keyspace::jobs, job_key(job), kLatestView);
    return found && found->erased;
  }

  // How many jobs the index has from one to the other; nullopt when one of them is not erased, or
  // when the index cannot tell.
  std::optional<std::uint64_t> count_if_all_erased(JobKey first, JobKey last) const {
    const BaseChunks chunks(base_, nullptr);
    const auto at = chunks.cursor(encode_chunk_key(chunk_of(first)), {});
    std::uint64_t count = 0;
    for (; at->valid(); at->next()) {
      const auto key = parse_chunk_key(at->key());
      if (!key) return std::nullopt;
      if (*key > chunk_of(last)) break;
      const auto chunk = JobChunk::decode(*key, at->value());
      if (!chunk) return std::nullopt;
      for (const Seq seq : chunk->seqs()) {
        const JobKey job{key->queue, seq};
        if (job < first || last < job) continue;
        if (!is_erased(job)) return std::nullopt;
        ++count;
      }
    }
    return at->status() ? std::optional(count) : std::nullopt;
  }

  bool holds_just(const Table& table, std::uint64_t jobs) const {
    const ::rocksdb::Range range(table.first, table.last);
    ::rocksdb::TablePropertiesCollection found;
    if (!base_->GetPropertiesOfTablesInRange(jobs_, &range, 1, &found).ok()) return false;
    const auto properties = found.find(table.path);
    return properties != found.end() && properties->second->num_entries == jobs &&
           properties->second->num_deletions == 0 && properties->second->num_range_deletions == 0;
  }

  Database& base_;
  const Overlay& overlay_;
  ::rocksdb::ColumnFamilyHandle* const jobs_;
};

}  // namespace

Status drop_dead_tables(Database& base, const Overlay& overlay,
                        const std::function<bool()>& nobody_looks_back) {
  return DeadTables(base, overlay).drop(nobody_looks_back);
}

}  // namespace reprise::storage
