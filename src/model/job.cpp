#include "model/job.h"

#include <algorithm>
#include <array>

#include "model/queue.h"

namespace reprise {
namespace {

constexpr std::array<std::string_view, kJobStatusCount> kStatusNames = {
    "scheduled", "pending", "active", "failed", "dead", "completed"};
constexpr std::array<std::string_view, 10> kReasonNames = {
    "none",    "max_attempts", "final", "lease_expired", "expired",
    "corrupt", "worker_lost",  "hook",  "hook_error",    "buried"};

}  // namespace

std::string_view status_name(JobStatus status) {
  return kStatusNames[static_cast<std::size_t>(status)];
}

std::optional<JobStatus> status_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kStatusNames, name);
  if (found == kStatusNames.end()) return std::nullopt;
  return static_cast<JobStatus>(found - kStatusNames.begin());
}

std::string_view lane_name(Lane lane) { return lane == Lane::fresh ? "fresh" : "retry"; }

std::string_view death_reason_name(DeathReason reason) {
  return kReasonNames[static_cast<std::size_t>(reason)];
}

std::optional<DeathReason> death_reason_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kReasonNames, name);
  if (found == kReasonNames.end() || found == kReasonNames.begin()) return std::nullopt;
  return static_cast<DeathReason>(found - kReasonNames.begin());
}

std::string_view decided_by_name(DecidedBy decided_by) {
  switch (decided_by) {
    case DecidedBy::policy:
      return "policy";
    case DecidedBy::client:
      return "client";
    case DecidedBy::hook:
      return "hook";
  }
  return "unknown";
}

std::string_view death_reason_text(const JobState& dead) {
  return dead.death_note.empty() ? death_reason_name(dead.death_reason) : dead.death_note;
}

std::string decided_by_text(const JobState& dead) {
  std::string text(decided_by_name(dead.decided_by));
  if (!dead.hook_version.empty()) text += ":" + dead.hook_version;
  return text;
}

void add_throttle_key(Scheduling& scheduling, std::string key) {
  std::vector<std::string>& keys = scheduling.throttle_keys;
  if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
}

std::uint64_t JobRecord::byte_size() const {
  std::uint64_t size = payload.size() + key.size();
  for (const auto& [name, value] : headers) size += name.size() + value.size();
  if (scheduling.fairness_key != kDefaultFairnessKey) size += scheduling.fairness_key.size();
  for (const std::string& throttle : scheduling.throttle_keys) size += throttle.size();
  return size;
}

JobStatus effective_status(const JobState* state, Timestamp now) {
  if (state == nullptr) return JobStatus::pending;
  const bool waits = state->status == JobStatus::scheduled || state->status == JobStatus::failed;
  return waits && state->due <= now ? JobStatus::pending : state->status;
}

std::string_view failure_bucket_name(std::size_t bucket) {
  static constexpr std::array<std::string_view, kFailureBuckets> kNames = {
      "1", "2", "3", "4", "5", "6", "7", "8", "9", "10+"};
  return kNames[bucket];
}

}  // namespace reprise
