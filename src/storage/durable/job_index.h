// JobIndex: what a restart needs of the jobs in the base, kept compactly beside them and brought up
// to date by each checkpoint, in the same atomic step. A fresh pending job takes a bit or two, so
// that a start reads a megabyte for ten million jobs rather than their records.
//
// The jobs of one queue whose seqs share their upper bits make a chunk: the fresh ones by priority
// and scheduling attributes as a bitmap or list, the others one by one.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/durable/keyed_jobs.h"
#include "storage/durable/overlay_view.h"
#include "storage/live_jobs.h"
#include "storage/records.h"

namespace reprise::storage {

struct ChunkKey {
  QueueNumber queue{};
  std::uint64_t number{};  // seq >> kChunkBits

  Seq first_seq() const { return number << kChunkBits; }
  friend auto operator<=>(const ChunkKey&, const ChunkKey&) = default;
};
ChunkKey chunk_of(JobKey job);
// Keys of the index: queue u32, number u64, big-endian.
std::string encode_chunk_key(ChunkKey key);
std::optional<ChunkKey> parse_chunk_key(std::string_view key);

class JobChunk {
 public:
  // Of one job, all that a chunk knows.
  struct Entry {
    Priority priority{};
    Timestamp expires_at = kNever;
    Scheduling scheduling;
    std::optional<JobState> state;  // as in LiveJob
    std::string damage;             // not empty: why nothing of the above can be trusted
  };

  // Of one that knows no attributes, as format 3 has them: all are the default.
  static Result<JobChunk> decode(ChunkKey key, std::string_view bytes);
  explicit JobChunk(ChunkKey key) : key_(key) {}
  std::string encode() const;

  bool empty() const { return fresh_.empty() && keyed_.empty() && others_.empty(); }
  std::optional<Entry> take(Seq seq);
  void set(Seq seq, Entry entry);
  // A fresh one with nothing but a priority that is not in the chunk yet.
  void set_plain(Seq seq, Priority priority);

  // Errc::corrupt for a job that was damaged when it was noted.
  Status visit(LiveJobVisitor& visitor) const;
  // Every seq in it, ascending or not.
  std::vector<Seq> seqs() const;

 private:
  using Bits = std::bitset<kChunkJobs>;

  // False: damaged.
  bool read_fresh(ByteReader& in);
  bool read_keyed(ByteReader& in);
  // All that are fresh, by group.
  Status for_each_fresh(const KeyedJobs::Visit& visit) const;

  ChunkKey key_;
  std::map<Priority, std::unique_ptr<Bits>> fresh_;  // with default attributes; no empty ones
  KeyedJobs keyed_;                                  // fresh too, with other attributes
  std::map<Seq, Entry> others_;
};

// The chunks in the base, and how to read one of them.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual Result<std::optional<std::string>> get(std::string_view key) const = 0;
  virtual std::unique_ptr<Storage::Cursor> cursor(std::string_view begin,
                                                  std::string_view end) const = 0;
};

// Outlines of records, by those who had them at hand: as much of them as an index wants. There is
// one for every record that a checkpoint writes, so the default attributes take no room.
class KnownOutlines {
 public:
  // In rising order, which is the order of a checkpoint.
  void add(JobKey job, JobOutline outline);
  // Fastest when asked in the same order.
  std::optional<JobChunk::Entry> find(JobKey job);
  // The priority of one that has neither attributes nor a ttl.
  std::optional<Priority> find_plain(JobKey job);

 private:
  struct Known {
    JobKey job;
    Timestamp expires_at;
    Priority priority{};
    std::uint32_t attributes = kDefaultAttributes;  // where they are
  };
  static constexpr std::uint32_t kDefaultAttributes = UINT32_MAX;
  const Known* look_up(JobKey job);

  std::vector<Known> known_;
  std::size_t at_ = 0;                  // of the one that was found last
  std::vector<Scheduling> attributes_;  // other than the default
};

// The chunks that the changes touch, brought up to date, in the order of their keys. An empty one
// is to be erased. A record whose outline is not known is read.
Status update_chunks(const ChunkSource& base, const OverlayView& changes, KnownOutlines& known,
                     const std::function<Status(ChunkKey, const JobChunk&)>& updated);

// All jobs of the base with the changes on top.
Status visit_live_jobs(const ChunkSource& base, const OverlayView& changes,
                       LiveJobVisitor& visitor);

}  // namespace reprise::storage
