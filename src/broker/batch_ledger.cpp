#include "broker/batch_ledger.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::Keyspace;

// What an entry costs beside the strings it holds: list and hash nodes, shared pointers.
constexpr std::size_t kEntryOverhead = 320;

constexpr std::uint32_t kWindowMax = 255;
constexpr std::uint32_t kWindowLeftBehind = 31;
constexpr Seq kLeftBehindMax = 1024;
constexpr std::uint32_t kSpanMax = 16;
constexpr std::uint64_t kPrefetchedSeqs = 1024;
constexpr std::uint64_t kWindowShareOfCache = 8;
constexpr std::size_t kReadPatternsMax = 10'000;
constexpr std::size_t kEncodedAheadMax = 4U << 20;

std::size_t size_of(const RecordPtr& record) { return record ? record->byte_size() : 0; }

std::size_t size_of(const StatePtr& state);
std::size_t size_of(const EndedJob& ended) { return size_of(ended.record) + size_of(ended.state); }

std::size_t size_of(const StatePtr& state) {
  if (!state) return 0;
  return state->last_error.size() + state->worker.size() + state->history.encoded().size();
}

Error located(const Error& error, std::string_view what, JobKey job) {
  return {error.code,
          std::string(what) + " of job " + encode_job_id(job.seq) + ": " + error.detail};
}

// The stored value decoded and shared; null when there is none.
template <class T, class Decode>
Result<std::shared_ptr<T>> load(const storage::Storage& storage, Keyspace keyspace, JobKey job,
                                std::string_view what, const Decode& decode) {
  const auto bytes = storage.get(keyspace, storage::job_key(job));
  if (!bytes) return located(bytes.error(), what, job);
  if (!*bytes) return std::shared_ptr<T>{};
  auto value = decode(**bytes);
  if (!value) return located(value.error(), what, job);
  return std::make_shared<T>(std::move(*value));
}

// What a cursor has found of a job's state: null when there is none, nothing when it cannot be
// read.
std::optional<StatePtr> state_at(const storage::Storage::Cursor& states, bool is_there) {
  if (!is_there) return StatePtr();
  auto state = storage::decode_state(states.value());
  if (!state) return std::nullopt;
  return std::make_shared<JobState>(*std::move(state));
}

}  // namespace

BatchLedger::BatchLedger(const storage::Storage& storage, std::uint64_t cache_bytes)
    : storage_(storage), cache_bytes_max_(cache_bytes) {}

bool BatchLedger::Entry::all_absent() const {
  return record && !*record && state && !*state && !(dead && dead->record) &&
         !(completed && completed->record);
}

Result<RecordPtr> BatchLedger::record(JobKey job) {
  Entry& entry = entry_of(job);
  if (entry.record) {
    ++hits_;
    return *entry.record;
  }
  ++misses_;
  if (const std::uint32_t window = window_for(read_patterns_, job); window > 1) {
    read_ahead(job, window);
    if (window == kWindowMax) prefetch(Keyspace::jobs, read_patterns_[job.queue], job.queue);
    Entry& filled = entry_of(job);
    if (filled.record) {
      RecordPtr record = *filled.record;
      evict();
      return record;
    }
  }
  return load_record(job);
}

Result<RecordPtr> BatchLedger::load_record(JobKey job) {
  Entry& entry = entry_of(job);
  auto loaded = load<JobRecord>(storage_, Keyspace::jobs, job, "record", storage::decode_job);
  if (!loaded) return loaded.error();
  entry.record = *loaded;
  recharge(entry);
  evict();
  return *loaded;
}

// Doubles its steps as long as the queue is read forwards, and falls back when it is not. Jobs that
// several workers ended at a time are read in groups that stand nearly in order: of one that was
// left behind some are read, and then it goes on.
std::uint32_t BatchLedger::window_for(ReadPatterns& patterns, JobKey job) {
  if (patterns.size() >= kReadPatternsMax) patterns.clear();
  ReadPattern& pattern = patterns[job.queue];
  const bool forwards = job.seq > pattern.last;
  if (!forwards && pattern.last - job.seq <= kLeftBehindMax && pattern.window > kWindowLeftBehind) {
    return kWindowLeftBehind;
  }
  pattern.window = forwards ? std::min(2 * pattern.window + 1, kWindowMax) : 1;
  pattern.last = job.seq;
  return pattern.window;
}

// Not to the end of the queue: behind these may be a hundred thousand that are gone, and the base
// would look at what it still has of each of them.
std::string BatchLedger::end_of_window(const ReadPattern& pattern, JobKey job,
                                       std::uint32_t window) {
  return storage::job_key({job.queue, job.seq + std::uint64_t{window} * pattern.span});
}

// Where many seqs are not the queue's, or gone, a window has to reach further.
void BatchLedger::adapt_span(ReadPattern& pattern, std::uint32_t window, std::uint32_t missing) {
  if (missing > window / 2) {
    pattern.span = std::min(2 * pattern.span, kSpanMax);
  } else if (missing == 0) {
    pattern.span = std::max(pattern.span / 2, 1U);
  }
}

// Brings this job and those behind it into the cache, with their states. What a batch on its way
// has changed is in the cache already and stays as it is. What cannot be read is left out: who asks
// for it hears why.
void BatchLedger::read_ahead(JobKey job, std::uint32_t window) {
  const auto snapshot = storage_.snapshot();
  ReadPattern& pattern = read_patterns_[job.queue];
  const std::string begin = storage::job_key(job);
  const std::string end = end_of_window(pattern, job, window);
  const auto states = snapshot->cursor(Keyspace::states, begin, end);
  const std::uint64_t bytes_max = cache_bytes_max_ / kWindowShareOfCache;
  std::uint64_t bytes = 0;
  const auto jobs = snapshot->cursor(Keyspace::jobs, begin, end);
  std::uint32_t missing = window;
  for (; jobs->valid() && missing > 0 && bytes < bytes_max; jobs->next(), --missing) {
    const auto key = storage::parse_job_key(jobs->key());
    if (!key) return;
    while (states->valid() && states->key() < jobs->key()) states->next();
    const bool has_state = states->valid() && states->key() == jobs->key();
    bytes += jobs->value().size();
    if (const auto cached = by_job_.find(*key); cached != by_job_.end() && cached->second->record) {
      continue;
    }
    auto record = storage::decode_job(jobs->value());
    if (!record) continue;
    Entry& entry = entry_of(*key);
    entry.record = std::make_shared<const JobRecord>(*std::move(record));
    if (!entry.state && states->status()) entry.state = state_at(*states, has_state);
    recharge(entry);
    pattern.last = key->seq;
  }
  if (bytes < bytes_max) adapt_span(pattern, window, missing);
}

// The same for the dead, who are brought back or purged one after another.
void BatchLedger::read_dead_ahead(JobKey job, std::uint32_t window) {
  const auto snapshot = storage_.snapshot();
  ReadPattern& pattern = dead_patterns_[job.queue];
  const std::uint64_t bytes_max = cache_bytes_max_ / kWindowShareOfCache;
  std::uint64_t bytes = 0;
  const auto dead =
      snapshot->cursor(Keyspace::dead, storage::job_key(job), end_of_window(pattern, job, window));
  std::uint32_t missing = window;
  for (; dead->valid() && missing > 0 && bytes < bytes_max; dead->next(), --missing) {
    const auto key = storage::parse_job_key(dead->key());
    if (!key) return;
    bytes += dead->value().size();
    Entry& entry = entry_of(*key);
    if (entry.dead) continue;
    auto ended = storage::decode_ended(dead->value());
    if (!ended) continue;
    entry.dead = *std::move(ended);
    recharge(entry);
    pattern.last = key->seq;
  }
  if (bytes < bytes_max) adapt_span(pattern, window, missing);
}

// Lets storage prepare what comes behind the records that were read last.
void BatchLedger::prefetch(Keyspace keyspace, ReadPattern& pattern, QueueNumber queue) {
  const Seq next = pattern.last + 1;
  const bool is_ahead = pattern.prefetched > next + kPrefetchedSeqs &&
                        pattern.prefetched <= next + 2 * kPrefetchedSeqs;
  if (is_ahead) return;
  const Seq begin = std::clamp(pattern.prefetched, next, next + kPrefetchedSeqs);
  pattern.prefetched = begin + kPrefetchedSeqs;
  storage_.prefetch(keyspace, storage::job_key({queue, begin}),
                    storage::job_key({queue, pattern.prefetched}));
}

Result<StatePtr> BatchLedger::state(JobKey job) {
  Entry& entry = entry_of(job);
  if (entry.state) return *entry.state;
  auto loaded = load<JobState>(storage_, Keyspace::states, job, "state", storage::decode_state);
  if (!loaded) return loaded.error();
  entry.state = *loaded;
  recharge(entry);
  return StatePtr(*loaded);
}

// A state that no batch on its way needs is given out as it is, which spares copying it with all
// its attempts; so is one that the open batch was to write, since what takes its place will be
// written instead, or behind it. No other thread has it then.
Result<StateDraft> BatchLedger::take_state(JobKey job) {
  REPRISE_CHECK(!taken_);
  auto known = state(job);
  if (!known) return known.error();
  if (!*known) return StateDraft();
  taken_ = job;
  const StatePtr taken = *std::move(known);
  Entry& entry = entry_of(job);
  entry.state = nullptr;
  const bool of_open_batch = entry.state_put_in == open_batch_;
  if (!of_open_batch && entry.state_put_in > settled_batch_) {
    return std::make_shared<JobState>(*taken);
  }
  const long holders = of_open_batch ? 2 : 1;  // the open batch beside this function
  if (taken.use_count() > holders) return std::make_shared<JobState>(*taken);
  return std::const_pointer_cast<JobState>(taken);
}

Result<EndedJob> BatchLedger::dead(JobKey job) {
  if (const Entry& entry = entry_of(job); entry.dead) return *entry.dead;
  if (const std::uint32_t window = window_for(dead_patterns_, job); window > 1) {
    read_dead_ahead(job, window);
    if (window == kWindowMax) prefetch(Keyspace::dead, dead_patterns_[job.queue], job.queue);
    if (const Entry& filled = entry_of(job); filled.dead) {
      EndedJob dead = *filled.dead;
      evict();
      return dead;
    }
  }
  // Not cached: the dead are read once, if at all.
  auto loaded =
      load<EndedJob>(storage_, Keyspace::dead, job, "dead-letter record", storage::decode_ended);
  if (!loaded) return loaded.error();
  return *loaded ? **loaded : EndedJob{};
}

Result<EndedJob> BatchLedger::completed(JobKey job) {
  Entry& entry = entry_of(job);
  if (entry.completed) return *entry.completed;
  auto loaded = load<EndedJob>(storage_, Keyspace::completed, job, "record", storage::decode_ended);
  if (!loaded) return loaded.error();
  return *loaded ? **loaded : EndedJob{};
}

Result<std::optional<KeyEntry>> BatchLedger::key(QueueNumber queue, std::string_view key) {
  const std::string stored_key = storage::idempotency_key(queue, key);
  if (const auto pending = pending_keys_.find(stored_key); pending != pending_keys_.end()) {
    return pending->second.entry;
  }
  const auto bytes = storage_.get(Keyspace::keys, stored_key);
  if (!bytes) return bytes.error();
  if (!*bytes) return std::optional<KeyEntry>{};
  const auto entry = storage::decode_key_entry(**bytes);
  if (!entry) return entry.error();
  return std::optional<KeyEntry>{*entry};
}

std::string BatchLedger::raw_record(JobKey job) {
  const auto bytes = storage_.get(Keyspace::jobs, storage::job_key(job));
  return bytes && *bytes ? **bytes : std::string();
}

std::uint64_t BatchLedger::stored_byte_size(JobKey job) {
  const std::string bytes = raw_record(job);
  const auto size = storage::decode_job_byte_size(bytes);
  // The damage may be in the size itself; what a record counts is part of it.
  return size ? std::min<std::uint64_t>(*size, bytes.size()) : 0;
}

void BatchLedger::put_job(JobKey job, RecordPtr record, std::uint64_t jobs_ahead) {
  Entry& entry = changed_entry(job);
  // The others of its queue will be about as large.
  const std::uint64_t bytes_ahead = jobs_ahead * (kEntryOverhead + size_of(record));
  const bool would_be_evicted = bytes_ahead > cache_bytes_max_;
  if (would_be_evicted && !std::exchange(entry.is_passing, true)) {
    passing_.emplace_back(open_batch_, last_used_);
  }
  entry.record = record;
  forget_state(entry);  // a new job has none; no need to ask storage
  recharge(entry);
  const std::size_t bytes = size_of(record) + 96;
  note(PutJob{job, std::move(record)}, bytes);
}

// Of several states that a job has within one batch only the last is written: one that is claimed
// as soon as it is released, say.
void BatchLedger::put_state(JobKey job, StatePtr state) {
  if (taken_ == job) taken_.reset();
  Entry& entry = changed_entry(job);
  const std::size_t charge_before = entry.charge;
  entry.state = state;
  recharge(entry);
  if (entry.state_put_in == open_batch_ && entry.state_change >= open_.encoded_changes) {
    std::get<PutState>(open_.changes[entry.state_change]).state = std::move(state);
    open_.payload_bytes += entry.charge - std::min(entry.charge, charge_before);
    return;
  }
  entry.state_put_in = open_batch_;
  entry.state_change = open_.changes.size();
  const std::size_t bytes = size_of(state) + 128;
  note(PutState{job, std::move(state)}, bytes);
}

void BatchLedger::erase_job(JobKey job) {
  if (taken_ == job) taken_.reset();
  Entry& entry = changed_entry(job);
  entry.record = nullptr;
  forget_state(entry);
  recharge(entry);
  erased_jobs_.emplace_back(open_batch_, job);
  note(EraseJob{job});
}

void BatchLedger::bury(JobKey job, EndedJob dead) {
  if (taken_ == job) taken_.reset();
  Entry& entry = changed_entry(job);
  entry.record = nullptr;
  forget_state(entry);
  entry.dead = dead;
  recharge(entry);
  erased_jobs_.emplace_back(open_batch_, job);
  const std::size_t bytes = size_of(dead) + 256;
  note(Bury{job, std::move(dead)}, bytes);
}

void BatchLedger::complete(JobKey job, EndedJob completed) {
  if (taken_ == job) taken_.reset();
  Entry& entry = changed_entry(job);
  entry.record = nullptr;
  forget_state(entry);
  entry.completed = completed;
  recharge(entry);
  erased_jobs_.emplace_back(open_batch_, job);
  const std::size_t bytes = size_of(completed) + 256;
  note(Complete{job, std::move(completed)}, bytes);
}

void BatchLedger::erase_dead(JobKey job, Timestamp ended_at) {
  Entry& entry = changed_entry(job);
  entry.dead = EndedJob{};
  recharge(entry);
  erased_jobs_.emplace_back(open_batch_, job);
  note(EraseDead{job, ended_at});
}

void BatchLedger::erase_completed(JobKey job, Timestamp ended_at) {
  Entry& entry = changed_entry(job);
  entry.completed = EndedJob{};
  recharge(entry);
  erased_jobs_.emplace_back(open_batch_, job);
  note(EraseCompleted{job, ended_at});
}

void BatchLedger::erase_ending(JobKey job, JobStatus status, Timestamp ended_at) {
  note(EraseEnding{job, status, ended_at});
}

void BatchLedger::put_key(QueueNumber queue, std::string_view key, KeyEntry entry) {
  std::string stored_key = storage::idempotency_key(queue, key);
  pending_keys_[stored_key] = {entry, open_batch_};
  changed_keys_.emplace_back(open_batch_, std::move(stored_key));
  note(PutKey{queue, std::string(key), entry}, key.size() + 64);
}

void BatchLedger::erase_key(QueueNumber queue, std::string_view key) {
  std::string stored_key = storage::idempotency_key(queue, key);
  pending_keys_[stored_key] = {std::nullopt, open_batch_};
  changed_keys_.emplace_back(open_batch_, std::move(stored_key));
  note(EraseKey{queue, std::string(key)}, key.size() + 32);
}

void BatchLedger::put_queue(const QueueRecord& queue) { note(PutQueue{boxed(queue)}, 512); }

// Cached jobs of the queue stay until they are evicted: its number is never used again, so nobody
// asks for them.
void BatchLedger::erase_queue(const QueueRecord& queue) {
  note(EraseQueue{queue.number, boxed(queue.name)}, 512);
}

void BatchLedger::put_totals(QueueNumber queue, const QueueTotals& totals) {
  note(PutTotals{queue, boxed(totals)}, 160);
}

void BatchLedger::put_operation(const Operation& operation) {
  note(PutOperation{boxed(operation)}, 1024);
}

void BatchLedger::erase_operation(OperationId id) { note(EraseOperation{id}); }

void BatchLedger::put_audit(const AuditRecord& record) { note(PutAudit{boxed(record)}, 512); }

void BatchLedger::erase_audit(std::uint64_t number) { note(EraseAudit{number}); }

void BatchLedger::put_webhook(const WebhookKey& key, EndedJob dead) {
  const std::size_t bytes = size_of(dead) + 256;
  note(PutWebhook{boxed(std::pair(key, std::move(dead)))}, bytes);
  open_.has_webhooks = true;
}

void BatchLedger::erase_webhook(const WebhookKey& key) { note(EraseWebhook{key}); }

void BatchLedger::put_config(const ConfigEntry& entry) {
  note(PutConfig{boxed(entry)}, entry.value.size() + 256);
}

void BatchLedger::erase_config(const std::string& ns, const std::string& key) {
  note(EraseConfig{ns, key});
}

void BatchLedger::put_throttle(const ThrottleRecord& record) {
  note(PutThrottle{boxed(record)}, 512);
}

void BatchLedger::erase_throttle(const std::string& ns, const std::string& key) {
  note(EraseThrottle{ns, key});
}

void BatchLedger::put_server(const ServerState& server) { note(PutServer{boxed(server)}); }

void BatchLedger::change_note(NoteChange change) {
  if (!change.value) return note(EraseNote{std::move(change.key)});
  const std::size_t bytes = change.key.size() + change.value->size() + 64;
  note(PutNote{boxed(Note{std::move(change.key), *std::move(change.value)})}, bytes);
}

// Not of a batch that is large already: its bytes would be in memory twice for long.
void BatchLedger::encode_ahead() {
  if (open_.payload_bytes <= kEncodedAheadMax) encode(open_);
}

std::pair<std::uint64_t, ChangeSet> BatchLedger::seal() {
  ChangeSet next;
  next.changes.reserve(open_.changes.size());  // as the last one, so will be the next
  REPRISE_CHECK(!taken_);
  return {open_batch_++, std::exchange(open_, std::move(next))};
}

void BatchLedger::settled(std::uint64_t batch) {
  settled_batch_ = batch;
  for (; !changed_keys_.empty() && changed_keys_.front().first <= batch;
       changed_keys_.pop_front()) {
    const auto pending = pending_keys_.find(changed_keys_.front().second);
    if (pending != pending_keys_.end() && pending->second.changed_by <= batch) {
      pending_keys_.erase(pending);
    }
  }
  let_pass();  // first: the others may remove what it knows
  for (; !erased_jobs_.empty() && erased_jobs_.front().first <= batch; erased_jobs_.pop_front()) {
    const auto found = by_job_.find(erased_jobs_.front().second);
    if (found == by_job_.end() || found->second->changed_by > batch) continue;
    // What has ended is read from storage from here on; an entry without anything is of no use.
    found->second->dead.reset();
    found->second->completed.reset();
    recharge(*found->second);
    if (found->second->all_absent()) remove(found->second);
  }
  evict();
}

BatchLedger::Entry& BatchLedger::entry_of(JobKey job) {
  if (last_used_ == entries_.end() || last_used_->job != job) {
    const auto [found, inserted] = by_job_.try_emplace(job);
    if (inserted) {
      entries_.push_front(Entry{.job = job, .used_in = open_batch_});
      found->second = entries_.begin();
      recharge(entries_.front());
    }
    last_used_ = found->second;
  }
  // Once a batch: a job is asked for several times in one.
  if (last_used_->used_in != open_batch_) {
    last_used_->used_in = open_batch_;
    entries_.splice(entries_.begin(), entries_, last_used_);
  }
  return *last_used_;
}

BatchLedger::Entry& BatchLedger::changed_entry(JobKey job) {
  Entry& entry = entry_of(job);
  entry.changed_by = open_batch_;
  return entry;
}

void BatchLedger::forget_state(Entry& entry) {
  entry.state = nullptr;
  entry.state_put_in = 0;
}

void BatchLedger::recharge(Entry& entry) {
  cached_bytes_ -= entry.charge;
  entry.charge = kEntryOverhead;
  if (entry.record) entry.charge += size_of(*entry.record);
  if (entry.state) entry.charge += size_of(*entry.state);
  if (entry.dead) entry.charge += size_of(*entry.dead);
  if (entry.completed) entry.charge += size_of(*entry.completed);
  cached_bytes_ += entry.charge;
}

void BatchLedger::remove(Entries::iterator entry) {
  cached_bytes_ -= entry->charge;
  if (last_used_ == entry) last_used_ = entries_.end();
  by_job_.erase(entry->job);
  entries_.erase(entry);
}

// An entry is here for the first batch that has changed it, so nothing has removed it yet.
void BatchLedger::let_pass() {
  for (; !passing_.empty() && passing_.front().first <= settled_batch_; passing_.pop_front()) {
    const auto [batch, entry] = passing_.front();
    entry->is_passing = false;
    if (entry->used_in == batch) remove(entry);
  }
}

// Stops at the first entry that a batch on its way still needs: all before it were used later, so
// what stays is bounded by what one batch may hold.
void BatchLedger::evict() {
  while (cached_bytes_ > cache_bytes_max_ && entries_.size() > 1) {
    const auto last = std::prev(entries_.end());
    if (last->changed_by > settled_batch_) return;
    remove(last);
  }
}

void BatchLedger::note(Change change, std::size_t bytes) {
  open_.changes.push_back(std::move(change));
  open_.payload_bytes += bytes;
}

}  // namespace reprise
