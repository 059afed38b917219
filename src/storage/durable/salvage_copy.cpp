#include "storage/durable/salvage_copy.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "storage/durable/job_index.h"
#include "storage/durable/overlay_view.h"
#include "storage/keys.h"
#include "storage/live_jobs.h"
#include "storage/records.h"

namespace reprise::storage {
namespace {

constexpr std::size_t kBatchBytes = 1U << 20;
constexpr std::size_t kBatchCount = 10'000;
constexpr std::uint64_t kProgressInterval = 1'000;
// Seqs that were given out in batches that are lost must not be given out again.
constexpr Seq kSeqMargin = 1U << 20;

struct Queue {
  std::optional<QueueRecord> record;  // none: it is lost
  std::optional<QueueTotals> totals;
  SalvagedQueue counts;
  std::uint64_t live_bytes = 0;
  std::uint64_t completed_kept = 0;
  Timestamp oldest = kNever;  // of its jobs
};

// The jobs that the index names, less those that the journal erased; ascending.
class ExpectedJobs {
 public:
  ExpectedJobs(const SalvagedBase& base, const OverlayView& changes, DamageLog& damage)
      : chunks_(base.index()), changes_(changes), damage_(damage) {
    load();
  }

  bool valid() const { return at_ < keys_.size(); }
  std::string_view key() const { return keys_[at_]; }
  void next() {
    if (++at_ == keys_.size()) load();
  }
  // Every chunk could be read.
  bool whole() const { return whole_; }

 private:
  void load() {
    keys_.clear();
    at_ = 0;
    for (; keys_.empty() && chunks_->valid(); chunks_->next()) {
      const auto key = parse_chunk_key(chunks_->key());
      const auto chunk =
          key ? JobChunk::decode(*key, chunks_->value())
              : Result<JobChunk>(Error{Errc::corrupt, "a key of the index is damaged"});
      if (!chunk) {
        damage_.noted(chunk.error().detail);
        whole_ = false;
        continue;
      }
      for (const Seq seq : chunk->seqs()) {
        std::string job = job_key({key->queue, seq});
        if (!changes_.find(Keyspace::jobs, job)) keys_.push_back(std::move(job));
      }
      std::ranges::sort(keys_);
    }
  }

  const std::unique_ptr<SkippingCursor> chunks_;
  const OverlayView& changes_;
  DamageLog& damage_;
  std::vector<std::string> keys_;  // of one chunk
  std::size_t at_ = 0;
  bool whole_ = true;
};

class SalvageCopy {
 public:
  SalvageCopy(const SalvageSource& from, Storage& to, DamageLog& damage,
              const std::function<void(std::uint64_t)>& progress)
      : from_(from),
        to_(to),
        damage_(damage),
        progress_(progress),
        changes_({from.journal.overlay}, kLatestView, nullptr) {}

  Result<std::vector<SalvagedQueue>> run() {
    const std::uint64_t places = damage_.places();
    REPRISE_TRY(read_queues());
    REPRISE_TRY(read_meta());
    queues_are_whole_ = damage_.places() == places;
    read_index();
    REPRISE_TRY(copy_jobs());
    REPRISE_TRY(copy_completed());
    REPRISE_TRY(copy_keys());
    REPRISE_TRY(write_queues());
    REPRISE_TRY(write_server());
    REPRISE_TRY(commit());
    REPRISE_TRY(to_.sync());
    return take_counts();
  }

 private:
  std::unique_ptr<Storage::Cursor> cursor(Keyspace keyspace) const {
    return make_merged_cursor(from_.base.cursor(keyspace), changes_, keyspace, {}, {});
  }

  // --- What is known of the queues ---------------------------------------------------------------

  Status read_queues() {
    const auto at = cursor(Keyspace::queues);
    for (; at->valid(); at->next()) {
      auto record = decode_queue(at->value());
      if (!record) {
        damage_.lost("a queue: " + record.error().detail);
        continue;
      }
      names_.insert(record->name);
      highest_queue_ = std::max(highest_queue_, record->number);
      queues_[record->number].record = *std::move(record);
    }
    return at->status();
  }

  Status read_meta() {
    const auto at = cursor(Keyspace::meta);
    for (; at->valid(); at->next()) {
      if (at->key() == kServerKey) {
        if (const auto server = decode_server(at->value())) server_ = *server;
      } else if (const auto number = parse_totals_key(at->key())) {
        const auto totals = decode_totals(at->value());
        if (totals) totals_.emplace(*number, *totals);
      } else if (is_whole_note(at->key(), at->value())) {
        put(Keyspace::meta, at->key(), at->value());
        REPRISE_TRY(commit_if_full());
      }
    }
    return at->status();
  }

  // Runtime values, throttles, operations, audit records and deaths still to be told.
  static bool is_whole_note(std::string_view key, std::string_view value) {
    if (key.starts_with(kConfigPrefix)) return decode_config(value).has_value();
    if (key.starts_with(kNotePrefix)) return decode_note(value).has_value();
    if (key.starts_with(kThrottlePrefix)) return decode_throttle(value).has_value();
    if (key.starts_with(kOperationPrefix)) return decode_operation(value).has_value();
    if (key.starts_with(kAuditPrefix)) return decode_audit(value).has_value();
    return key.starts_with(kWebhookPrefix) && decode_ended(value).has_value();
  }

  // Once through it, to know whether it can be trusted.
  void read_index() {
    const std::uint64_t places = damage_.places();
    ExpectedJobs all(from_.base, changes_, damage_);
    while (all.valid()) all.next();
    index_is_whole_ = from_.base.has_index() && all.whole() && damage_.places() == places;
  }

  // One that jobs were found of, but no record, is made.
  Queue& queue_of(QueueNumber number) {
    Queue& queue = queues_[number];
    highest_queue_ = std::max(highest_queue_, number);
    return queue;
  }

  // --- Jobs -----------------------------------------------------------------------------------

  Status copy_jobs() {
    auto base_jobs = from_.base.cursor(Keyspace::jobs);
    const SkippingCursor& base = *base_jobs;
    const auto jobs = make_merged_cursor(std::move(base_jobs), changes_, Keyspace::jobs, {}, {});
    const auto states = cursor(Keyspace::states);
    const auto dead = cursor(Keyspace::dead);
    ExpectedJobs expected(from_.base, changes_, damage_);
    const std::array<Storage::Cursor*, 3> all = {jobs.get(), states.get(), dead.get()};
    while (true) {
      std::optional<std::string> key;
      const auto look_at = [&](std::string_view candidate) {
        if (!key || candidate < *key) key = candidate;
      };
      for (const auto* at : all) {
        if (at->valid()) look_at(at->key());
      }
      if (expected.valid()) look_at(expected.key());
      if (!key) break;
      const auto value_at = [&](const Storage::Cursor& at) {
        return at.valid() && at.key() == *key ? std::optional(at.value()) : std::nullopt;
      };
      REPRISE_TRY(copy_job(*key, {.record = value_at(*jobs),
                                  .state = value_at(*states),
                                  .dead = value_at(*dead),
                                  .doubtful = base.valid() && base.key() == *key && base.doubtful(),
                                  .expected = expected.valid() && expected.key() == *key}));
      for (auto* at : all) {
        if (at->valid() && at->key() == *key) at->next();
      }
      if (expected.valid() && expected.key() == *key) expected.next();
    }
    REPRISE_TRY(jobs->status());
    REPRISE_TRY(states->status());
    return dead->status();
  }

  // What is there of one job.
  struct Found {
    std::optional<std::string_view> record;
    std::optional<std::string_view> state;
    std::optional<std::string_view> dead;
    bool doubtful = false;  // its erasure may be in what cannot be read
    bool expected = false;  // the index has it
  };

  Status copy_job(const std::string& key, const Found& found) {
    const auto job = parse_job_key(key);
    if (!job) {
      damage_.lost(describe_job(key));
      return ok();
    }
    if (was_erased(key, *job, found)) return ok();
    highest_seq_ = std::max(highest_seq_, job->seq);
    Queue& queue = queue_of(job->queue);
    if (found.dead && !came_back(found)) return copy_dead(key, *found.dead, queue);
    const auto record = decode_job(found.record.value_or(std::string_view()));
    if (!record) {
      ++queue.counts.live_lost;
      lost_.insert(job->seq);
      if (found.record) damage_.noted(describe_job(key) + ": " + record.error().detail);
      return ok();
    }
    note_time(queue, record->pushed_at);
    put(Keyspace::jobs, key, *found.record);
    if (found.state) {
      if (is_live_state(*found.state)) {
        put(Keyspace::states, key, *found.state);
      } else {
        ++queue.counts.live_reset;
        damage_.noted(describe_job(key) + ": its state cannot be read, it is fresh again");
      }
    }
    ++queue.counts.live_kept;
    queue.live_bytes += record->byte_size();
    return commit_if_full();
  }

  // Whether it is in the base only because its erasure, or that of its queue, cannot be read. The
  // index knows of jobs that are not dead.
  bool was_erased(const std::string& key, JobKey job, const Found& found) const {
    if (!found.doubtful && from_.base.knows_erased_ranges()) return false;
    for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::states, Keyspace::dead}) {
      if (changes_.find(keyspace, key)) return false;
    }
    const bool is_queue_gone =
        queues_are_whole_ && !queues_.contains(job.queue) && !totals_.contains(job.queue);
    return is_queue_gone || (!found.dead && index_is_whole_ && !found.expected);
  }

  // A death is later than what else there may be of the job, unless it was retried since.
  static bool came_back(const Found& found) {
    const auto dead = decode_ended(*found.dead);
    const auto state = decode_state(found.state.value_or(std::string_view()));
    return found.record && decode_job(*found.record) && state && dead &&
           state->generation > dead->state->generation;
  }

  Status copy_dead(const std::string& key, std::string_view bytes, Queue& queue) {
    const auto dead = decode_ended(bytes);
    if (!dead) {
      ++queue.counts.dead_lost;
      damage_.noted(describe_job(key) + ": " + dead.error().detail);
      return ok();
    }
    note_time(queue, dead->record->pushed_at);
    put(Keyspace::dead, key, bytes);
    put_ending(*parse_job_key(key), EndKind::dead, *dead);
    ++queue.counts.dead_kept;
    return commit_if_full();
  }

  // The index by time is not copied but made anew, so that it fits what was kept.
  void put_ending(JobKey job, EndKind kind, const EndedJob& ended) {
    put(Keyspace::endings,
        ending_key({.queue = job.queue, .kind = kind, .at = ended.state->ended_at, .seq = job.seq}),
        encode_ending(ending_of(ended)));
  }

  // They are finished, and kept for show: what cannot be read of them is no loss to report.
  Status copy_completed() {
    const auto at = cursor(Keyspace::completed);
    for (; at->valid(); at->next()) {
      const auto job = parse_job_key(at->key());
      const auto ended = decode_ended(at->value());
      if (!job || !ended || !is_kept(job->queue)) continue;
      highest_seq_ = std::max(highest_seq_, job->seq);
      put(Keyspace::completed, at->key(), at->value());
      put_ending(*job, EndKind::completed, *ended);
      ++queue_of(job->queue).completed_kept;
      REPRISE_TRY(commit_if_full());
    }
    return at->status();
  }

  static bool is_live_state(std::string_view bytes) {
    const auto state = decode_state(bytes);
    return state && state->status != JobStatus::dead && state->status != JobStatus::completed;
  }

  void note_time(Queue& queue, Timestamp pushed_at) {
    queue.oldest = std::min(queue.oldest, pushed_at);
    latest_ = std::max(latest_, pushed_at);
  }

  bool is_kept(QueueNumber number) const {
    const auto found = queues_.find(number);
    if (found == queues_.end()) return false;
    const Queue& queue = found->second;
    return queue.record || queue.counts.live_kept + queue.counts.dead_kept > 0;
  }

  Status copy_keys() {
    const auto at = cursor(Keyspace::keys);
    for (; at->valid(); at->next()) {
      const auto parts = parse_idempotency_key(at->key());
      const auto entry = decode_key_entry(at->value());
      if (!parts || !entry || !is_kept(parts->queue) || lost_.contains(entry->seq)) continue;
      highest_seq_ = std::max(highest_seq_, entry->seq);
      put(Keyspace::keys, at->key(), at->value());
      REPRISE_TRY(commit_if_full());
    }
    return at->status();
  }

  // --- Sums -------------------------------------------------------------------------------------

  Status write_queues() {
    for (auto& [number, queue] : queues_) {
      if (const auto found = totals_.find(number); found != totals_.end()) {
        queue.totals = found->second;
      }
      compare_with_totals(queue);
      SalvagedQueue& counts = queue.counts;
      if (!queue.record && counts.live_kept + counts.dead_kept > 0) recover(number, queue);
      if (!queue.record) continue;
      put(Keyspace::queues, queue_key(queue.record->name), encode_queue(*queue.record));
      QueueTotals totals = queue.totals.value_or(
          QueueTotals{.pushed = counts.live_kept + counts.dead_kept, .died = counts.dead_kept});
      totals.dead_now = counts.dead_kept;
      totals.live_bytes = queue.live_bytes;
      totals.completed_now = queue.completed_kept;
      put(Keyspace::meta, totals_key(number), encode_totals(totals));
      REPRISE_TRY(commit_if_full());
    }
    return ok();
  }

  // The index tells exactly which jobs are missing, as long as all of it and the journal behind it
  // can be read. If not, the counters say how many there should be.
  void compare_with_totals(Queue& queue) const {
    if (!queue.totals) return;
    const QueueTotals& totals = *queue.totals;
    SalvagedQueue& counts = queue.counts;
    const auto missing = [](std::uint64_t should_be, std::uint64_t kept) {
      return should_be > kept ? should_be - kept : 0;
    };
    counts.dead_lost = std::max(counts.dead_lost, missing(totals.dead_now, counts.dead_kept));
    if (index_is_whole_ && from_.journal.batches_lost == 0) return;
    const std::uint64_t came = totals.pushed + totals.moved_in;
    const std::uint64_t gone = totals.completed + totals.dropped + totals.dead_now +
                               totals.moved_out + totals.purged + totals.dead_expired +
                               totals.dead_evicted;
    counts.live_lost = std::max(counts.live_lost, missing(missing(came, gone), counts.live_kept));
  }

  void recover(QueueNumber number, Queue& queue) {
    QueueRecord record{.number = number, .name = {.name = "recovered-" + std::to_string(number)}};
    for (int attempt = 2; names_.contains(record.name); ++attempt) {
      record.name.name = "recovered-" + std::to_string(number) + "-" + std::to_string(attempt);
    }
    record.created_at = queue.oldest;
    names_.insert(record.name);
    queue.counts.recovered = true;
    queue.record = std::move(record);
  }

  Status write_server() {
    ServerState server = server_.value_or(ServerState{.clock = latest_});
    server.next_seq = std::max(server.next_seq, highest_seq_ + 1);
    server.next_queue = std::max(server.next_queue, highest_queue_ + 1);
    server.clock = std::max(server.clock, latest_);
    if (const auto& checkpoint = from_.base.checkpoint()) {
      server.next_seq = std::max(server.next_seq, checkpoint->seq_highest + 1);
    }
    if (!server_ || damage_.places() + from_.journal.batches_lost > 0)
      server.next_seq += kSeqMargin;
    const bool is_new = !server_ && queues_.empty();
    if (!is_new) put(Keyspace::meta, kServerKey, encode_server(server));
    return ok();
  }

  std::vector<SalvagedQueue> take_counts() {
    std::vector<SalvagedQueue> counts;
    for (auto& [number, queue] : queues_) {
      SalvagedQueue& each = queue.counts;
      each.number = number;
      // Nothing of it could be kept, not even its name.
      each.name = queue.record ? queue.record->name
                               : QueueName{.name = "unknown-" + std::to_string(number)};
      counts.push_back(std::move(each));
    }
    std::ranges::sort(counts, {}, &SalvagedQueue::name);
    return counts;
  }

  // --- Writing
  // ------------------------------------------------------------------------------------

  void put(Keyspace keyspace, std::string_view key, std::string_view value) {
    batch_.put(keyspace, key, value);
  }
  Status commit_if_full() {
    if (++through_ % kProgressInterval == 0 && progress_) progress_(through_);
    if (batch_.byte_size() < kBatchBytes && batch_.count() < kBatchCount) return ok();
    return commit();
  }
  Status commit() {
    if (batch_.empty()) return ok();
    REPRISE_TRY(to_.commit(batch_, Durability::buffered));
    batch_.clear();
    return ok();
  }

  const SalvageSource& from_;
  Storage& to_;
  DamageLog& damage_;
  const std::function<void(std::uint64_t)>& progress_;
  const OverlayView changes_;

  std::map<QueueNumber, Queue> queues_;
  std::map<QueueNumber, QueueTotals> totals_;
  std::set<QueueName> names_;
  std::optional<ServerState> server_;
  absl::flat_hash_set<Seq> lost_;
  Seq highest_seq_ = 0;
  QueueNumber highest_queue_ = 0;
  Timestamp latest_{};
  bool queues_are_whole_ = false;
  bool index_is_whole_ = false;
  Batch batch_;
  std::uint64_t through_ = 0;
};

}  // namespace

Result<std::vector<SalvagedQueue>> copy_salvaged(
    const SalvageSource& from, Storage& to, DamageLog& damage,
    const std::function<void(std::uint64_t)>& progress) {
  return SalvageCopy(from, to, damage, progress).run();
}

}  // namespace reprise::storage
