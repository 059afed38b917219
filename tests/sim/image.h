// Image: all that is stored, decoded and comparable: as a storage has it, and as the model says it
// must be.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/job.h"
#include "model/queue.h"
#include "sim/model.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/storage.h"

namespace reprise::sim {

// Levels that will be the same from now on are equal, whenever they were taken.
struct StoredThrottle {
  ThrottleRecord record;
  friend bool operator==(const StoredThrottle& a, const StoredThrottle& b);
};
std::string describe(const StoredThrottle& stored);

struct Image {
  std::map<JobKey, JobRecord> records;
  std::map<JobKey, JobState> states;  // only of jobs that are not fresh and pending
  std::map<JobKey, std::pair<JobRecord, JobState>> dead;
  std::map<JobKey, std::pair<JobRecord, JobState>> completed;
  std::map<storage::EndingKey, storage::Ending> endings;  // of the dead and the completed
  std::map<OperationId, Operation> operations;            // without the words of errors
  std::map<std::uint64_t, AuditRecord> audit;
  Model::Webhooks webhooks;
  Model::Config config;
  std::map<std::pair<std::string, std::string>, StoredThrottle> throttles;
  std::map<std::pair<QueueNumber, std::string>, KeyEntry> keys;
  std::map<QueueName, QueueRecord> queues;
  std::map<QueueNumber, QueueTotals> totals;
  Seq next_seq = 1;
  QueueNumber next_queue = 1;
  OperationId next_operation = 1;
  std::uint64_t next_audit = 1;

  friend bool operator==(const Image&, const Image&) = default;
};

// As a model can know it.
Operation without_words(Operation operation);

// Errors: what a server's start would refuse, too.
Result<Image> read_image(const storage::Storage& storage);
Image image_of(const Model& model);

// The first difference, for people; empty when there is none.
std::string difference(const Image& got, const Image& want);

}  // namespace reprise::sim
