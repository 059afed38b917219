// MapLedger: a Ledger of a few maps, open to the test, that can be told which of its records fail
// their checksum.
// Threads: one owner, no locks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/ledger.h"

namespace reprise::test {

struct MapLedger final : Ledger {
  using KeyName = std::pair<QueueNumber, std::string>;

  std::map<JobKey, RecordPtr> jobs;
  std::map<JobKey, StatePtr> states;
  std::map<JobKey, EndedJob> dead_jobs;
  std::map<JobKey, EndedJob> completed_jobs;
  std::map<OperationId, Operation> operations;
  std::map<std::uint64_t, AuditRecord> audit;
  std::map<WebhookKey, EndedJob> webhooks;
  std::map<std::pair<std::string, std::string>, ConfigEntry> config;        // namespace, key
  std::map<std::pair<std::string, std::string>, ThrottleRecord> throttles;  // the same
  std::map<KeyName, KeyEntry> keys;
  std::map<QueueNumber, QueueRecord> queues;
  std::map<QueueNumber, QueueTotals> totals;
  ServerState server;

  std::set<JobKey> corrupt_records;
  std::set<JobKey> corrupt_states;
  std::set<JobKey> corrupt_dead;
  std::set<KeyName> corrupt_keys;
  std::map<JobKey, std::uint64_t> corrupt_sizes;  // of damaged records, where not as they were

  Result<RecordPtr> record(JobKey job) override {
    if (corrupt_records.contains(job)) return Error{Errc::corrupt, "record fails its checksum"};
    return find(jobs, job);
  }
  Result<StatePtr> state(JobKey job) override {
    if (corrupt_states.contains(job)) return Error{Errc::corrupt, "state fails its checksum"};
    return find(states, job);
  }
  Result<EndedJob> dead(JobKey job) override {
    if (corrupt_dead.contains(job)) return Error{Errc::corrupt, "dead job fails its checksum"};
    return find(dead_jobs, job);
  }
  Result<EndedJob> completed(JobKey job) override { return find(completed_jobs, job); }
  Result<std::optional<KeyEntry>> key(QueueNumber queue, std::string_view key) override {
    const KeyName name{queue, std::string(key)};
    if (corrupt_keys.contains(name)) return Error{Errc::corrupt, "key fails its checksum"};
    const auto found = keys.find(name);
    if (found == keys.end()) return std::optional<KeyEntry>{};
    return std::optional(found->second);
  }
  // As long as the stored form would be, and unlike it.
  std::string raw_record(JobKey job) override {
    const RecordPtr record = find(jobs, job);
    return record ? "damaged bytes of " + record->payload : "";
  }

  std::uint64_t stored_byte_size(JobKey job) override {
    if (const auto size = corrupt_sizes.find(job); size != corrupt_sizes.end()) return size->second;
    const RecordPtr record = find(jobs, job);
    return record ? record->byte_size() : 0;
  }

  void put_job(JobKey job, RecordPtr record, std::uint64_t) override {
    jobs[job] = std::move(record);
  }
  void put_state(JobKey job, StatePtr state) override { states[job] = std::move(state); }
  void erase_job(JobKey job) override {
    jobs.erase(job);
    states.erase(job);
    corrupt_records.erase(job);
    corrupt_states.erase(job);
  }
  void bury(JobKey job, EndedJob dead) override {
    erase_job(job);
    dead_jobs[job] = std::move(dead);
  }
  void complete(JobKey job, EndedJob completed) override {
    erase_job(job);
    completed_jobs[job] = std::move(completed);
  }
  void erase_dead(JobKey job, Timestamp /*ended_at*/) override {
    dead_jobs.erase(job);
    corrupt_dead.erase(job);
  }
  void erase_completed(JobKey job, Timestamp /*ended_at*/) override { completed_jobs.erase(job); }
  void erase_ending(JobKey /*job*/, JobStatus /*status*/, Timestamp /*ended_at*/) override {}
  void put_key(QueueNumber queue, std::string_view key, KeyEntry entry) override {
    keys[{queue, std::string(key)}] = entry;
    corrupt_keys.erase({queue, std::string(key)});
  }
  void erase_key(QueueNumber queue, std::string_view key) override {
    keys.erase({queue, std::string(key)});
    corrupt_keys.erase({queue, std::string(key)});
  }
  void put_queue(const QueueRecord& queue) override { queues[queue.number] = queue; }
  void erase_queue(const QueueRecord& queue) override {
    const auto of_queue = [&](const auto& entry) { return entry.first.queue == queue.number; };
    std::erase_if(jobs, of_queue);
    std::erase_if(states, of_queue);
    std::erase_if(dead_jobs, of_queue);
    std::erase_if(completed_jobs, of_queue);
    std::erase_if(keys, [&](const auto& entry) { return entry.first.first == queue.number; });
    queues.erase(queue.number);
    totals.erase(queue.number);
  }
  void put_totals(QueueNumber queue, const QueueTotals& of_queue) override {
    totals[queue] = of_queue;
  }
  void put_operation(const Operation& operation) override { operations[operation.id] = operation; }
  void erase_operation(OperationId id) override { operations.erase(id); }
  void put_audit(const AuditRecord& record) override { audit[record.number] = record; }
  void erase_audit(std::uint64_t number) override { audit.erase(number); }
  void put_webhook(const WebhookKey& key, EndedJob dead) override {
    webhooks[key] = std::move(dead);
  }
  void erase_webhook(const WebhookKey& key) override { webhooks.erase(key); }
  void put_throttle(const ThrottleRecord& record) override {
    throttles[{record.throttle.ns, record.throttle.key}] = record;
  }
  void erase_throttle(const std::string& ns, const std::string& key) override {
    throttles.erase({ns, key});
  }
  void put_config(const ConfigEntry& entry) override { config[{entry.ns, entry.key}] = entry; }
  void erase_config(const std::string& ns, const std::string& key) override {
    config.erase({ns, key});
  }
  void put_server(const ServerState& state) override { server = state; }

 private:
  template <class Value>
  static Value find(const std::map<JobKey, Value>& map, JobKey job) {
    const auto found = map.find(job);
    return found == map.end() ? Value{} : found->second;
  }
};

}  // namespace reprise::test
