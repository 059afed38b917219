// Describe: replies, jobs and queues as short text: what the simulation compares, and what it
// prints. Two replies that a client could tell apart have different texts, except for the words of
// an error and the secrets of leases, which a model cannot know.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands.h"
#include "engine/engine.h"
#include "model/job.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/throttle.h"
#include "sim/model.h"
#include "storage/records.h"

namespace reprise::sim {

std::string describe(JobKey job);
std::string describe(const QueueName& name);
std::string describe(const LeaseToken& token);
std::string describe(const QueueRecord& queue);
std::string describe(const QueueTotals& totals);
std::string describe(const QueueStats& stats);  // without rates
std::string describe(const JobRecord& record);
std::string describe(const JobState& state);
std::string describe(const std::pair<JobRecord, JobState>& dead);
std::string describe(const KeyEntry& entry);
std::string describe(const storage::Ending& ending);
std::string describe(const Operation& operation);
std::string describe(const AuditRecord& record);
std::string describe(const std::vector<Engine::Keeping>& keepings);

std::string describe(const NewJob& job);
std::string describe(const PushCommand& command);
std::string describe(const ClaimCommand& command);
std::string describe(const SelectionCommand& command);

std::string describe(const PushedJob& pushed);
std::string describe(const PushReply& reply);
std::string describe(const ClaimReply& reply);
std::string describe(const Acked& acked);
std::string describe(const Failed& failed);
std::string describe(const Released& released);
std::string describe(const Extended& extended);
std::string describe(const DroppedJob& dropped);
std::string describe(const SelectionReply& reply);
std::string describe(const ConfigEntry& entry);
std::string describe(const Throttle& throttle);
std::string describe(const ThrottleRecord& record);
std::string describe(const std::vector<HookWork>& work);
std::string describe(const std::vector<HookResult>& results);
std::string describe(const Model::Keys& keys);
std::string describe(bool flag);

std::string describe_error(const Error& error);

template <class T>
std::string describe(const Result<T>& result) {
  if (!result) return describe_error(result.error());
  if constexpr (std::is_void_v<T>) {
    return "ok";
  } else {
    return describe(*result);
  }
}
template <class T>
std::string describe(const std::vector<Result<T>>& results) {
  std::string text;
  for (const Result<T>& result : results) text += "[" + describe(result) + "]";
  return text;
}
template <class T>
std::string describe(const std::optional<T>& value) {
  return value ? describe(*value) : "none";
}

}  // namespace reprise::sim
