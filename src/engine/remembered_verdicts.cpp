#include "engine/remembered_verdicts.h"

#include "base/bytes.h"

namespace reprise {
namespace {

constexpr std::size_t kEntryOverhead = 160;

std::size_t size_of(const EnqueueVerdict& verdict) {
  std::size_t size = verdict.fairness_key.value_or("").size() + verdict.reject.value_or("").size();
  if (!verdict.throttle_keys) return size;
  for (const std::string& key : *verdict.throttle_keys) size += sizeof key + key.size();
  return size;
}

}  // namespace

const EnqueueVerdict* RememberedVerdicts::find(const JobRecord& job) {
  if (pause_ > 0) {
    --pause_;
    return nullptr;
  }
  if (verdicts_.empty()) return nullptr;
  const auto found = verdicts_.find(key_of(job));
  if (found == verdicts_.end()) return nullptr;
  ++hits_;
  return &found->second;
}

void RememberedVerdicts::learn(const JobRecord& job, const EnqueueVerdict& verdict) {
  if (pause_ > 0) return;
  const std::string& key = key_of(job);
  const std::size_t size = kEntryOverhead + key.size() + size_of(verdict);
  if (bytes_ + size > kBytesMax) {
    const bool was_of_use = hits_ >= verdicts_.size();
    clear();
    if (!was_of_use) {
      pause_ = kPause;
      return;
    }
    if (size > kBytesMax) return;
  }
  if (verdicts_.try_emplace(key, verdict).second) bytes_ += size;
}

void RememberedVerdicts::clear() {
  verdicts_.clear();
  bytes_ = 0;
  hits_ = 0;
  pause_ = 0;
}

// All that a repeatable verdict may follow from, each part with its length.
const std::string& RememberedVerdicts::key_of(const JobRecord& job) {
  key_.clear();
  ByteWriter out(key_);
  out.fixed(job.priority);
  out.varint(job.scheduling.weight);
  out.bytes(job.scheduling.fairness_key);
  out.varint(job.scheduling.throttle_keys.size());
  for (const std::string& key : job.scheduling.throttle_keys) out.bytes(key);
  for (const auto& [name, value] : job.headers) {
    out.bytes(name);
    out.bytes(value);
  }
  return key_;
}

}  // namespace reprise
