#include "storage/durable/job_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "storage/keys.h"
#include "storage/scheduling_bytes.h"

namespace reprise::storage {
namespace {

// Without scheduling attributes: 1.
constexpr std::uint8_t kChunkVersion = 2;
constexpr std::uint8_t kFirstChunkVersion = 1;
constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
constexpr Seq kLowMask = kChunkJobs - 1;

// How the seqs of a group of fresh jobs are written: whichever is shorter.
enum class SeqForm : std::uint8_t { list = 0, bitmap = 1 };
constexpr std::size_t kBitmapBytes = kChunkJobs / 8;

constexpr std::uint8_t kHasTtl = 1;
constexpr std::uint8_t kHasState = 2;
constexpr std::uint8_t kIsDamaged = 4;
constexpr std::uint8_t kHasAttributes = 8;
constexpr std::uint8_t kAllFlags = kHasTtl | kHasState | kIsDamaged | kHasAttributes;

Error corrupt_chunk(ChunkKey key) {
  return Error{Errc::corrupt, "the index of queue number " + std::to_string(key.queue) +
                                  ", chunk " + std::to_string(key.number) + ", is damaged"};
}

void write_seqs(std::string& out, std::span<const LowSeq> seqs) {
  std::string list;
  ByteWriter deltas(list);
  for (LowSeq last = 0; const LowSeq seq : seqs) {
    deltas.varint(static_cast<std::uint64_t>(seq - last));
    last = seq;
  }
  ByteWriter writer(out);
  if (list.size() < kBitmapBytes) {
    writer.fixed(static_cast<std::uint8_t>(SeqForm::list));
    writer.varint(seqs.size());
    out.append(list);
    return;
  }
  writer.fixed(static_cast<std::uint8_t>(SeqForm::bitmap));
  std::array<std::uint8_t, kBitmapBytes> bitmap{};
  for (const LowSeq seq : seqs) bitmap[seq / 8] |= static_cast<std::uint8_t>(1U << seq % 8);
  out.append(bitmap.begin(), bitmap.end());
}

// Calls `add` with each. False: damaged, or `add` said so.
template <class Add>
bool read_seqs(ByteReader& in, const Add& add) {
  const auto form = in.fixed<std::uint8_t>();
  if (form == static_cast<std::uint8_t>(SeqForm::bitmap)) {
    for (std::size_t byte = 0; byte < kBitmapBytes; ++byte) {
      for (unsigned value = in.fixed<std::uint8_t>(); value != 0; value &= value - 1) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(value));
        if (!add(static_cast<LowSeq>(byte * 8 + bit))) return false;
      }
    }
    return !in.failed();
  }
  if (form != static_cast<std::uint8_t>(SeqForm::list)) return false;
  std::uint64_t at = 0;
  for (std::uint64_t left = in.varint(); left > 0; --left) {
    const std::uint64_t delta = in.varint();
    if (in.failed() || delta >= kChunkJobs - at) return false;
    at += delta;
    if (!add(static_cast<LowSeq>(at))) return false;
  }
  return true;
}

std::vector<LowSeq> lows_of(const std::bitset<kChunkJobs>& bits) {
  std::vector<LowSeq> lows;
  lows.reserve(bits.count());
  for (std::size_t at = bits._Find_first(); at < kChunkJobs; at = bits._Find_next(at)) {
    lows.push_back(static_cast<LowSeq>(at));
  }
  return lows;
}

void write_time(ByteWriter& out, Timestamp time) { out.fixed(time.time_since_epoch().count()); }
Timestamp read_time(ByteReader& in) { return Timestamp(Duration(in.fixed<std::int64_t>())); }

void write_entry(std::string& out, const JobChunk::Entry& entry) {
  ByteWriter writer(out);
  const std::string attributes = encode_scheduling(entry.scheduling);
  std::uint8_t flags = 0;
  if (entry.expires_at != kNever) flags |= kHasTtl;
  if (entry.state) flags |= kHasState;
  if (!entry.damage.empty()) flags |= kIsDamaged;
  if (!attributes.empty()) flags |= kHasAttributes;
  writer.fixed(flags);
  writer.varint(entry.priority);
  if ((flags & kHasTtl) != 0) write_time(writer, entry.expires_at);
  if ((flags & kIsDamaged) != 0) writer.bytes(entry.damage);
  if ((flags & kHasAttributes) != 0) writer.bytes(attributes);
  if ((flags & kHasState) == 0) return;
  writer.fixed(static_cast<std::uint8_t>(entry.state->status));
  writer.fixed(static_cast<std::uint8_t>(std::min(entry.state->failures, kFailuresKnown)));
  write_time(writer, entry.state->due);
  if (entry.state->status != JobStatus::active) return;
  writer.fixed(entry.state->lease_nonce);
  write_time(writer, entry.state->lease_deadline);
}

// nullopt: damaged.
std::optional<JobChunk::Entry> read_entry(ByteReader& in) {
  JobChunk::Entry entry;
  const auto flags = in.fixed<std::uint8_t>();
  if ((flags & ~kAllFlags) != 0) return std::nullopt;
  entry.priority = static_cast<Priority>(in.varint());
  if ((flags & kHasTtl) != 0) entry.expires_at = read_time(in);
  if ((flags & kIsDamaged) != 0) entry.damage = std::string(in.bytes());
  if ((flags & kHasAttributes) != 0) {
    auto scheduling = decode_scheduling(in.bytes());
    if (!scheduling) return std::nullopt;
    entry.scheduling = *std::move(scheduling);
  }
  if ((flags & kHasState) != 0) {
    JobState state;
    const auto status = in.fixed<std::uint8_t>();
    if (status >= kJobStatusCount) return std::nullopt;
    state.status = static_cast<JobStatus>(status);
    state.failures = in.fixed<std::uint8_t>();
    state.due = read_time(in);
    if (state.status == JobStatus::active) {
      state.lease_nonce = in.fixed<std::uint64_t>();
      state.lease_deadline = read_time(in);
    }
    entry.state = std::move(state);
  }
  if (in.failed()) return std::nullopt;
  return entry;
}

}  // namespace

ChunkKey chunk_of(JobKey job) { return {job.queue, job.seq >> kChunkBits}; }

std::string encode_chunk_key(ChunkKey key) { return job_key({key.queue, key.number}); }

std::optional<ChunkKey> parse_chunk_key(std::string_view key) {
  const auto parsed = parse_job_key(key);
  if (!parsed) return std::nullopt;
  return ChunkKey{parsed->queue, parsed->seq};
}

std::string JobChunk::encode() const {
  std::string out;
  ByteWriter writer(out);
  writer.fixed(kChunkVersion);
  writer.varint(fresh_.size());
  for (const auto& [priority, bits] : fresh_) {
    writer.varint(priority);
    write_seqs(out, lows_of(*bits));
  }
  writer.varint(keyed_.group_count());
  (void)keyed_.for_each_group([&](const auto& group, auto lows) {
    writer.bytes(encode_scheduling(group.scheduling));
    writer.varint(group.priority);
    write_seqs(out, lows);
    return ok();
  });
  writer.varint(others_.size());
  for (const auto& [seq, entry] : others_) {
    writer.varint(seq & kLowMask);
    write_entry(out, entry);
  }
  writer.fixed(crc32c(out));
  return out;
}

Result<JobChunk> JobChunk::decode(ChunkKey key, std::string_view bytes) {
  if (bytes.size() < 1 + kChecksumBytes) return corrupt_chunk(key);
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (ByteReader(bytes.substr(covered.size())).fixed<std::uint32_t>() != crc32c(covered)) {
    return corrupt_chunk(key);
  }
  ByteReader in(covered);
  const auto version = in.fixed<std::uint8_t>();
  if (version < kFirstChunkVersion || version > kChunkVersion) return corrupt_chunk(key);
  JobChunk chunk(key);
  if (!chunk.read_fresh(in)) return corrupt_chunk(key);
  if (version >= 2 && !chunk.read_keyed(in)) return corrupt_chunk(key);
  for (std::uint64_t others = in.varint(); others > 0 && !in.failed(); --others) {
    const std::uint64_t low = in.varint();
    auto entry = read_entry(in);
    if (!entry || low > kLowMask) return corrupt_chunk(key);
    chunk.others_.emplace(key.first_seq() + low, *std::move(entry));
  }
  if (!in.done()) return corrupt_chunk(key);
  return chunk;
}

bool JobChunk::read_fresh(ByteReader& in) {
  for (std::uint64_t groups = in.varint(); groups > 0 && !in.failed(); --groups) {
    const auto priority = static_cast<Priority>(in.varint());
    auto bits = std::make_unique<Bits>();
    const auto add = [&bits](LowSeq low) {
      bits->set(low);
      return true;
    };
    if (!read_seqs(in, add) || bits->none()) return false;
    fresh_.emplace(priority, std::move(bits));
  }
  return true;
}

bool JobChunk::read_keyed(ByteReader& in) {
  for (std::uint64_t groups = in.varint(); groups > 0 && !in.failed(); --groups) {
    auto scheduling = decode_scheduling(in.bytes());
    const auto priority = static_cast<Priority>(in.varint());
    if (!scheduling) return false;
    const auto number = keyed_.add_group({priority, *std::move(scheduling)});
    bool any = false;
    const auto add = [&](LowSeq low) { return any = keyed_.add(low, number); };
    if (!read_seqs(in, add) || !any) return false;
  }
  return true;
}

std::optional<JobChunk::Entry> JobChunk::take(Seq seq) {
  if (const auto other = others_.find(seq); other != others_.end()) {
    auto entry = std::move(other->second);
    others_.erase(other);
    return entry;
  }
  const auto low = static_cast<LowSeq>(seq & kLowMask);
  if (auto keyed = keyed_.take(low)) {
    return Entry{.priority = keyed->priority, .scheduling = std::move(keyed->scheduling)};
  }
  for (auto group = fresh_.begin(); group != fresh_.end(); ++group) {
    Bits& bits = *group->second;
    if (!bits.test(low)) continue;
    const Priority priority = group->first;
    bits.reset(low);
    if (bits.none()) fresh_.erase(group);
    return Entry{.priority = priority};
  }
  return std::nullopt;
}

void JobChunk::set(Seq seq, Entry entry) {
  if (entry.state || entry.expires_at != kNever || !entry.damage.empty()) {
    others_.insert_or_assign(seq, std::move(entry));
    return;
  }
  const auto low = static_cast<LowSeq>(seq & kLowMask);
  if (entry.scheduling != Scheduling{}) {
    keyed_.set(low, {entry.priority, std::move(entry.scheduling)});
    return;
  }
  set_plain(seq, entry.priority);
}

void JobChunk::set_plain(Seq seq, Priority priority) {
  auto& bits = fresh_[priority];
  if (!bits) bits = std::make_unique<Bits>();
  bits->set(seq & kLowMask);
}

Status JobChunk::for_each_fresh(const KeyedJobs::Visit& visit) const {
  for (const auto& [priority, bits] : fresh_) {
    REPRISE_TRY(visit({.priority = priority}, lows_of(*bits)));
  }
  return keyed_.for_each_group(visit);
}

Status JobChunk::visit(LiveJobVisitor& visitor) const {
  std::vector<Seq> seqs;
  REPRISE_TRY(for_each_fresh([&](const auto& group, auto lows) {
    seqs.clear();
    for (const LowSeq low : lows) seqs.push_back(key_.first_seq() + low);
    return visitor.fresh(key_.queue, group.priority, group.scheduling, seqs);
  }));
  for (const auto& [seq, entry] : others_) {
    const JobKey job{key_.queue, seq};
    if (!entry.damage.empty()) {
      return Error{Errc::corrupt, describe_job(job_key(job)) + ": " + entry.damage};
    }
    REPRISE_TRY(visitor.other({.key = job,
                               .priority = entry.priority,
                               .expires_at = entry.expires_at,
                               .scheduling = entry.scheduling,
                               .state = entry.state}));
  }
  return ok();
}

std::vector<Seq> JobChunk::seqs() const {
  std::vector<Seq> seqs;
  for (const auto& [seq, entry] : others_) seqs.push_back(seq);
  (void)for_each_fresh([&](const auto&, auto lows) {
    for (const LowSeq low : lows) seqs.push_back(key_.first_seq() + low);
    return ok();
  });
  return seqs;
}

void KnownOutlines::add(JobKey job, JobOutline outline) {
  REPRISE_CHECK(known_.empty() || known_.back().job < job);
  known_.push_back({.job = job, .expires_at = outline.expires_at, .priority = outline.priority});
  if (outline.scheduling == Scheduling{}) return;
  known_.back().attributes = static_cast<std::uint32_t>(attributes_.size());
  attributes_.push_back(std::move(outline.scheduling));
}

const KnownOutlines::Known* KnownOutlines::look_up(JobKey job) {
  if (at_ < known_.size() && known_[at_].job == job) return &known_[at_];
  if (at_ + 1 < known_.size() && known_[at_ + 1].job == job) return &known_[++at_];
  const auto found = std::ranges::lower_bound(known_, job, {}, &Known::job);
  if (found == known_.end() || found->job != job) return nullptr;
  at_ = static_cast<std::size_t>(found - known_.begin());
  return &*found;
}

std::optional<JobChunk::Entry> KnownOutlines::find(JobKey job) {
  const Known* known = look_up(job);
  if (known == nullptr) return std::nullopt;
  JobChunk::Entry entry{.priority = known->priority, .expires_at = known->expires_at};
  if (known->attributes != kDefaultAttributes) entry.scheduling = attributes_[known->attributes];
  return entry;
}

std::optional<Priority> KnownOutlines::find_plain(JobKey job) {
  const Known* known = look_up(job);
  const bool is_plain =
      known != nullptr && known->attributes == kDefaultAttributes && known->expires_at == kNever;
  return is_plain ? std::optional(known->priority) : std::nullopt;
}

namespace {

// Brings chunks up to date with the changes in a view.
class ChunkUpdater {
 public:
  ChunkUpdater(const ChunkSource& base, const OverlayView& changes, KnownOutlines& known)
      : base_(base), changes_(changes), known_(known), erased_ranges_(changes.erased_ranges()) {}

  // Every chunk that any change falls into, and those of erased ranges that are in the base.
  Result<std::set<ChunkKey>> touched() const {
    std::set<ChunkKey> chunks;
    for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::states}) {
      std::string from;
      while (const auto entry = changes_.next(keyspace, from)) {
        const auto job = parse_job_key(entry->key);
        if (!job) {
          from = entry->key + '\0';
          continue;
        }
        chunks.insert(chunk_of(*job));
        from = end_of(chunk_of(*job));
      }
    }
    for (const auto& range : erased_ranges_) {
      if (range.keyspace != Keyspace::jobs && range.keyspace != Keyspace::states) continue;
      const auto begin = first_job_of(range.begin);
      const auto cursor = base_.cursor(encode_chunk_key(chunk_of(begin)), {});
      for (; cursor->valid(); cursor->next()) {
        const auto key = parse_chunk_key(cursor->key());
        if (!key || job_key({key->queue, key->first_seq()}) >= range.end) break;
        chunks.insert(*key);
      }
      REPRISE_TRY(cursor->status());
    }
    return chunks;
  }

  Result<JobChunk> load(ChunkKey key) const {
    const auto bytes = base_.get(encode_chunk_key(key));
    if (!bytes) return bytes.error();
    if (!*bytes) return JobChunk(key);
    return JobChunk::decode(key, **bytes);
  }

  Status update(ChunkKey key, JobChunk& chunk) {
    hide_erased_ranges(key, chunk);
    const std::string begin = job_key({key.queue, key.first_seq()});
    const std::string end = end_of(key);
    const auto jobs = changes_.entries(Keyspace::jobs, begin, end);
    const auto states = changes_.entries(Keyspace::states, begin, end);
    auto job = jobs.begin();
    auto state = states.begin();
    while (job != jobs.end() || state != states.end()) {
      const bool job_is_first =
          state == states.end() || (job != jobs.end() && job->key <= state->key);
      const std::string& at = job_is_first ? job->key : state->key;
      const bool state_changed = state != states.end() && state->key == at;
      if (const auto parsed = parse_job_key(at)) {
        REPRISE_TRY(change(chunk, *parsed, job_is_first ? &job->found : nullptr,
                           state_changed ? &state->found : nullptr));
      }
      if (job_is_first) ++job;
      if (state_changed) ++state;
    }
    return ok();
  }

 private:
  using Found = Overlay::Found;

  static std::string end_of(ChunkKey key) {
    return job_key({key.queue, key.first_seq() | kLowMask}) + '\0';
  }

  // The lowest job at or after a key that need not be a job's.
  static JobKey first_job_of(std::string_view key) {
    std::string padded(key.substr(0, sizeof(QueueNumber) + sizeof(Seq)));
    padded.resize(sizeof(QueueNumber) + sizeof(Seq));
    return *parse_job_key(padded);
  }

  void hide_erased_ranges(ChunkKey key, JobChunk& chunk) const {
    if (erased_ranges_.empty()) return;
    for (const Seq seq : chunk.seqs()) {
      const std::string job = job_key({key.queue, seq});
      if (changes_.hidden_until(Keyspace::jobs, job)) {
        chunk.take(seq);
      } else if (changes_.hidden_until(Keyspace::states, job)) {
        auto entry = chunk.take(seq);
        entry->state.reset();
        chunk.set(seq, *std::move(entry));
      }
    }
  }

  // Null: not changed.
  Status change(JobChunk& chunk, JobKey key, const Found* job, const Found* state) {
    if (job != nullptr && job->is_new && !job->erased && state == nullptr) {
      // A push, which is what most changes are.
      if (const auto priority = known_.find_plain(key)) {
        chunk.set_plain(key.seq, *priority);
        return ok();
      }
    }
    auto entry = chunk.take(key.seq);
    if (job != nullptr && job->erased) {
      if (state == nullptr || state->erased) return ok();
      entry.reset();  // a state that outlived its job
    }
    if (job != nullptr && !job->erased) {
      auto outline = outline_of(key, *job);
      if (!outline) return outline.error();
      // A record is written once, so a state that is not mentioned is one of before.
      if (entry) outline->state = std::move(entry->state);
      entry = *std::move(outline);
    }
    if (!entry) {
      if (state->erased) return ok();
      entry = JobChunk::Entry{.damage = "its state is there without its record"};
    }
    if (state != nullptr) {
      entry->state.reset();
      if (!state->erased) REPRISE_TRY(read_state(*state, *entry));
    }
    chunk.set(key.seq, *std::move(entry));
    return ok();
  }

  Result<JobChunk::Entry> outline_of(JobKey key, const Found& job) {
    if (auto known = known_.find(key)) return *std::move(known);
    auto bytes = values_.read(job.place, kJobOutlineBytes);
    if (!bytes) return bytes.error();
    if (const std::size_t needed = job_outline_bytes(*bytes); needed > bytes->size()) {
      bytes = values_.read(job.place, needed);
      if (!bytes) return bytes.error();
    }
    auto outline = decode_job_outline(*bytes);
    if (!outline) return JobChunk::Entry{.damage = outline.error().detail};
    return JobChunk::Entry{.priority = outline->priority,
                           .expires_at = outline->expires_at,
                           .scheduling = std::move(outline->scheduling)};
  }

  Status read_state(const Found& found, JobChunk::Entry& entry) {
    const auto bytes = values_.read(found.place);
    if (!bytes) return bytes.error();
    const auto state = decode_state(*bytes);
    if (state) {
      entry.state = storage::outline_of(*state);
    } else {
      entry.damage = state.error().detail;
    }
    return ok();
  }

  const ChunkSource& base_;
  const OverlayView& changes_;
  KnownOutlines& known_;
  const std::vector<Overlay::ErasedRange> erased_ranges_;
  ValueReader values_;
};

}  // namespace

Status update_chunks(const ChunkSource& base, const OverlayView& changes, KnownOutlines& known,
                     const std::function<Status(ChunkKey, const JobChunk&)>& updated) {
  ChunkUpdater updater(base, changes, known);
  const auto touched = updater.touched();
  if (!touched) return touched.error();
  for (const ChunkKey key : *touched) {
    auto chunk = updater.load(key);
    if (!chunk) return chunk.error();
    REPRISE_TRY(updater.update(key, *chunk));
    REPRISE_TRY(updated(key, *chunk));
  }
  return ok();
}

Status visit_live_jobs(const ChunkSource& base, const OverlayView& changes,
                       LiveJobVisitor& visitor) {
  KnownOutlines none;
  ChunkUpdater updater(base, changes, none);
  auto touched = updater.touched();
  if (!touched) return touched.error();
  const auto visit_touched = [&](ChunkKey key, JobChunk chunk) -> Status {
    REPRISE_TRY(updater.update(key, chunk));
    return chunk.visit(visitor);
  };
  const auto stored = base.cursor({}, {});
  for (; stored->valid(); stored->next()) {
    const auto key = parse_chunk_key(stored->key());
    if (!key) return Error{Errc::corrupt, "the index has a key that is no chunk's"};
    while (!touched->empty() && *touched->begin() < *key) {
      REPRISE_TRY(visit_touched(*touched->begin(), JobChunk(*touched->begin())));
      touched->erase(touched->begin());
    }
    auto chunk = JobChunk::decode(*key, stored->value());
    if (!chunk) return chunk.error();
    if (touched->erase(*key) == 0) {
      REPRISE_TRY(chunk->visit(visitor));
    } else {
      REPRISE_TRY(visit_touched(*key, *std::move(chunk)));
    }
  }
  REPRISE_TRY(stored->status());
  for (const ChunkKey key : *touched) REPRISE_TRY(visit_touched(key, JobChunk(key)));
  return ok();
}

}  // namespace reprise::storage
