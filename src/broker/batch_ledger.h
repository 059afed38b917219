// BatchLedger: the engine's ledger over storage. Reads go through a bounded cache of recent jobs;
// writes go to the cache and to the open batch.
// Invariants: an entry changed by a batch that is not committed yet is never evicted, so reads
// always see the engine's own changes; all else is evicted, longest unused first, beyond
// `cache_bytes`. A queue whose jobs are claimed in order is read ahead.
// Jobs at the end of a queue that is larger than the cache would be evicted before anybody asks for
// them, so they leave when they are committed, and their memory is used again while it is warm.
// Threads: the engine's only. Storage reads are safe beside commits.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "broker/change_set.h"
#include "engine/ledger.h"
#include "storage/storage.h"

namespace reprise {

class BatchLedger final : public Ledger {
 public:
  BatchLedger(const storage::Storage& storage, std::uint64_t cache_bytes);

  Result<RecordPtr> record(JobKey job) override;
  Result<StatePtr> state(JobKey job) override;
  Result<StateDraft> take_state(JobKey job) override;
  Result<EndedJob> dead(JobKey job) override;
  Result<EndedJob> completed(JobKey job) override;
  Result<std::optional<KeyEntry>> key(QueueNumber queue, std::string_view key) override;
  std::string raw_record(JobKey job) override;
  std::uint64_t stored_byte_size(JobKey job) override;

  void put_job(JobKey job, RecordPtr record, std::uint64_t jobs_ahead) override;
  void put_state(JobKey job, StatePtr state) override;
  void erase_job(JobKey job) override;
  void bury(JobKey job, EndedJob dead) override;
  void complete(JobKey job, EndedJob completed) override;
  void erase_dead(JobKey job, Timestamp ended_at) override;
  void erase_completed(JobKey job, Timestamp ended_at) override;
  void erase_ending(JobKey job, JobStatus status, Timestamp ended_at) override;
  void put_key(QueueNumber queue, std::string_view key, KeyEntry entry) override;
  void erase_key(QueueNumber queue, std::string_view key) override;
  void put_queue(const QueueRecord& queue) override;
  void erase_queue(const QueueRecord& queue) override;
  void put_totals(QueueNumber queue, const QueueTotals& totals) override;
  void put_operation(const Operation& operation) override;
  void erase_operation(OperationId id) override;
  void put_audit(const AuditRecord& record) override;
  void erase_audit(std::uint64_t number) override;
  void put_webhook(const WebhookKey& key, EndedJob dead) override;
  void erase_webhook(const WebhookKey& key) override;
  void put_config(const ConfigEntry& entry) override;
  void erase_config(const std::string& ns, const std::string& key) override;
  void put_throttle(const ThrottleRecord& record) override;
  void erase_throttle(const std::string& ns, const std::string& key) override;
  void put_server(const ServerState& server) override;
  // Not the engine's: it knows nothing of notes.
  void change_note(NoteChange change);

  const ChangeSet& open_changes() const { return open_; }
  void encode_ahead();
  // Ends the open batch and begins the next. Batches are numbered from 1.
  std::pair<std::uint64_t, ChangeSet> seal();
  // All batches up to this number are in storage: their entries may be evicted.
  void settled(std::uint64_t batch);

  std::uint64_t cached_bytes() const { return cached_bytes_; }
  std::uint64_t hits() const { return hits_; }
  std::uint64_t misses() const { return misses_; }

 private:
  // For each part: not known, known to be absent (null), or known.
  struct Entry {
    JobKey job;
    std::optional<RecordPtr> record;
    std::optional<StatePtr> state;
    std::uint64_t state_put_in = 0;  // the batch that has it; 0: it came from storage
    std::size_t state_change = 0;    // its place among the changes of that batch
    std::optional<EndedJob> dead;
    std::optional<EndedJob> completed;
    std::uint64_t used_in = 0;     // the batch that was open when it was used last
    std::uint64_t changed_by = 0;  // the latest batch that changed it
    std::size_t charge = 0;
    bool is_passing = false;  // in passing_
    bool all_absent() const;
  };
  using Entries = std::list<Entry>;  // those used in the latest batches first
  struct PendingKey {
    std::optional<KeyEntry> entry;
    std::uint64_t changed_by = 0;
  };

  // How a queue's records are being read: one after the other, or here and there.
  struct ReadPattern {
    Seq last{};                // read last
    std::uint32_t window = 0;  // records to read at once
    std::uint32_t span = 1;    // seqs to look through for each of them: as few as have it lately
    Seq prefetched{};          // up to before this one storage was told to read
  };

  using ReadPatterns = absl::flat_hash_map<QueueNumber, ReadPattern>;

  Result<RecordPtr> load_record(JobKey job);
  static std::uint32_t window_for(ReadPatterns& patterns, JobKey job);
  static std::string end_of_window(const ReadPattern& pattern, JobKey job, std::uint32_t window);
  static void adapt_span(ReadPattern& pattern, std::uint32_t window, std::uint32_t missing);
  void read_ahead(JobKey job, std::uint32_t window);
  void read_dead_ahead(JobKey job, std::uint32_t window);
  void prefetch(storage::Keyspace keyspace, ReadPattern& pattern, QueueNumber queue);
  Entry& entry_of(JobKey job);
  Entry& changed_entry(JobKey job);
  // For a state that is no longer the job's.
  void forget_state(Entry& entry);
  void recharge(Entry& entry);
  void remove(Entries::iterator entry);
  void evict();
  void let_pass();
  void note(Change change, std::size_t bytes = 64);

  const storage::Storage& storage_;
  const std::uint64_t cache_bytes_max_;

  Entries entries_;
  absl::flat_hash_map<JobKey, Entries::iterator, NeighbourHash> by_job_;
  std::uint64_t cached_bytes_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  Entries::iterator last_used_ = entries_.end();  // a job is asked for several times in a row
  ReadPatterns read_patterns_;
  ReadPatterns dead_patterns_;

  // Idempotency keys changed by batches that are not settled yet, by storage key.
  absl::flat_hash_map<std::string, PendingKey> pending_keys_;
  // What settled() has to look at, by batch.
  std::deque<std::pair<std::uint64_t, std::string>> changed_keys_;
  std::deque<std::pair<std::uint64_t, JobKey>> erased_jobs_;
  // Those that leave with the batch they came with, unless somebody asks for them until then.
  std::deque<std::pair<std::uint64_t, Entries::iterator>> passing_;

  std::optional<JobKey> taken_;  // whose state is out, to be changed

  ChangeSet open_;
  std::uint64_t open_batch_ = 1;
  std::uint64_t settled_batch_ = 0;
};

}  // namespace reprise
