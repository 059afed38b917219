#include "storage/durable/upgrade.h"

#include <optional>
#include <utility>

#include "storage/durable/base_chunks.h"
#include "storage/durable/job_index.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/rocksdb/table_writer.h"

namespace reprise::storage {
namespace {

constexpr std::uint32_t kFirstFormatWithAttributes = 4;  // in the index

Result<std::uint32_t> format_of(const Database& base) {
  const auto bytes = base.read({}, base.family(Keyspace::meta), kFormatKey);
  if (!bytes) return bytes.error();
  return decode_format_version(bytes->value_or(std::string()));
}

// nullopt: they cannot be read, and so nor can the job when it is claimed.
Result<std::optional<Scheduling>> read_attributes(const Database& base, JobKey job) {
  const auto record = base.read({}, base.family(Keyspace::jobs), job_key(job));
  if (!record && record.error().code != Errc::corrupt) return record.error();
  if (!record || !*record) return std::optional<Scheduling>();
  auto outline = decode_job_outline(**record);
  if (!outline) return std::optional<Scheduling>();
  return std::optional(std::move(outline->scheduling));
}

Status add_attributes(const Database& base, ChunkKey key, JobChunk& chunk) {
  for (const Seq seq : chunk.seqs()) {
    auto attributes = read_attributes(base, {key.queue, seq});
    if (!attributes) return attributes.error();
    if (!*attributes || **attributes == Scheduling{}) continue;
    auto entry = chunk.take(seq);
    entry->scheduling = **std::move(attributes);
    chunk.set(seq, *std::move(entry));
  }
  return ok();
}

Status write_index(Database& base, TableWriter& tables) {
  const BaseChunks chunks(base, nullptr);
  const auto stored = chunks.cursor({}, {});
  for (; stored->valid(); stored->next()) {
    const auto key = parse_chunk_key(stored->key());
    if (!key) return Error{Errc::corrupt, "the index has a key that is no chunk's"};
    auto chunk = JobChunk::decode(*key, stored->value());
    if (!chunk) return chunk.error();
    REPRISE_TRY(add_attributes(base, *key, *chunk));
    REPRISE_TRY(tables.put(base.index(), stored->key(), chunk->encode()));
  }
  return stored->status();
}

}  // namespace

Status upgrade_base(Database& base, const std::string& directory) {
  const auto format = format_of(base);
  if (!format) return format.error();
  if (*format == kFormatVersion) return ok();
  TableWriter tables(base, directory);
  REPRISE_TRY(
      tables.put(base.family(Keyspace::meta), kFormatKey, encode_format_version(kFormatVersion)));
  if (*format < kFirstFormatWithAttributes) REPRISE_TRY(write_index(base, tables));
  return tables.ingest();
}

}  // namespace reprise::storage
