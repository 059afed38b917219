// ChangeSet: the typed changes of one batch, in order, and how they become storage mutations.
// The engine's thread gathers them, and encodes them ahead while it waits for the commit before;
// the committer encodes the rest.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "model/config_entry.h"
#include "model/job.h"
#include "model/note.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/server_state.h"
#include "model/throttle.h"
#include "model/webhook.h"
#include "storage/batch.h"

namespace reprise {

// A batch is mostly changes of jobs: what is rare and large stands apart, so that these are small.
template <class T>
using Boxed = std::shared_ptr<const T>;
template <class T>
Boxed<T> boxed(T value) {
  return std::make_shared<const T>(std::move(value));
}

struct PutJob {
  JobKey job;
  RecordPtr record;
};
struct PutState {
  JobKey job;
  StatePtr state;
};
struct EraseJob {
  JobKey job;
};
struct Bury {
  JobKey job;
  EndedJob dead;
};
struct Complete {
  JobKey job;
  EndedJob completed;
};
struct EraseDead {
  JobKey job;
  Timestamp ended_at;
};
struct EraseCompleted {
  JobKey job;
  Timestamp ended_at;
};
struct EraseEnding {
  JobKey job;
  JobStatus status{};
  Timestamp ended_at;
};
struct PutKey {
  QueueNumber queue{};
  std::string key;
  KeyEntry entry;
};
struct EraseKey {
  QueueNumber queue{};
  std::string key;
};
struct PutQueue {
  Boxed<QueueRecord> queue;
};
struct EraseQueue {
  QueueNumber number{};
  Boxed<QueueName> name;
};
struct PutTotals {
  QueueNumber queue{};
  Boxed<QueueTotals> totals;
};
struct PutOperation {
  Boxed<Operation> operation;
};
struct EraseOperation {
  OperationId id{};
};
struct PutAudit {
  Boxed<AuditRecord> record;
};
struct EraseAudit {
  std::uint64_t number{};
};
struct PutWebhook {
  Boxed<std::pair<WebhookKey, EndedJob>> death;
};
struct EraseWebhook {
  WebhookKey key;
};
struct PutConfig {
  Boxed<ConfigEntry> entry;
};
struct PutThrottle {
  Boxed<ThrottleRecord> record;
};
struct EraseThrottle {
  std::string ns;
  std::string key;
};
struct EraseConfig {
  std::string ns;
  std::string key;
};
struct PutNote {
  Boxed<Note> note;
};
struct EraseNote {
  std::string key;
};
struct PutServer {
  Boxed<ServerState> server;
};

using Change =
    std::variant<PutJob, PutState, EraseJob, Bury, Complete, EraseDead, EraseCompleted, EraseEnding,
                 PutKey, EraseKey, PutQueue, EraseQueue, PutTotals, PutOperation, EraseOperation,
                 PutAudit, EraseAudit, PutWebhook, EraseWebhook, PutConfig, EraseConfig,
                 PutThrottle, EraseThrottle, PutNote, EraseNote, PutServer>;

static_assert(sizeof(Change) <= 72);

struct ChangeSet {
  std::vector<Change> changes;
  std::size_t payload_bytes = 0;  // about what the encoded form will take
  bool has_webhooks = false;      // somebody is to be told of a death
  storage::Batch encoded;         // the first of them, or all
  std::size_t encoded_changes = 0;

  bool empty() const { return changes.empty(); }
};

// Encodes those that are not encoded yet.
void encode(ChangeSet& changes);

}  // namespace reprise
