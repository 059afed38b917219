// Hooks: the Lua functions of a queue, what they are told and what they answer, as plain values.
// Which of them is asked when is the engine's; how Lua is kept in bounds is hooks/. The guide is
// docs/hooks.md.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

// The first 12 hexadecimal digits of the source's SHA-256: enough to tell the scripts of one queue
// apart, short enough to read aloud.
std::string hook_version(std::string_view source);

// What a hook is told of a job.
struct HookMessage {
  RecordPtr job;  // headers, payload and, for on_enqueue, the attributes it was pushed with
  // on_failure only.
  std::string id;
  std::uint32_t attempts = 0;  // this one counted already, as in `failures`
  std::uint32_t failures = 0;
  std::string error;
  std::string error_type;
  Timestamp first_attempt_at{};
};

// --- What a hook answers.

// on_failure
struct FailureVerdict {
  bool retry = true;   // otherwise dead
  Duration delay{};    // before the retry
  std::string reason;  // of the death; empty: none was given
  friend bool operator==(const FailureVerdict&, const FailureVerdict&) = default;
};
// on_enqueue. What it does not name stays as it was pushed.
struct EnqueueVerdict {
  std::optional<std::string> fairness_key;
  std::optional<std::uint32_t> weight;
  std::optional<std::vector<std::string>> throttle_keys;
  std::optional<std::string> reject;  // why the job is refused
  friend bool operator==(const EnqueueVerdict&, const EnqueueVerdict&) = default;
};

void apply_verdict(Scheduling& scheduling, const EnqueueVerdict& verdict);

struct HookFailure {
  HookFault fault{};
  std::string message;  // for people; names the line where there is one
  friend bool operator==(const HookFailure&, const HookFailure&) = default;
};

using HookOutcome = std::variant<FailureVerdict, EnqueueVerdict, HookFailure>;

// --- What is asked of those who run hooks, in order.

using HookCallId = std::uint64_t;

// What a queue's hooks may use; the server's defaults where the queue says nothing.
struct HookLimits {
  Duration timeout = std::chrono::milliseconds(10);
  std::uint64_t memory_bytes = 1ULL << 20;
  friend bool operator==(const HookLimits&, const HookLimits&) = default;
};

struct Limits;
HookLimits hook_limits(const QueueConfig& config, const Limits& limits);

// From now on these are a queue's hooks. Both sources empty: it has none (any more).
struct HookDefinition {
  QueueNumber queue{};
  QueueName name;
  std::array<std::string, kHookKindCount> sources;  // index: HookKind
  HookLimits limits;
};
struct HookCall {
  HookCallId id{};
  QueueNumber queue{};
  HookKind hook{};
  HookMessage message;
};
// Nobody wants the answers of this queue's hook that are still out.
struct AbandonedHook {
  QueueNumber queue{};
  HookKind hook{};
};
// A runtime key-value as config.get() sees it from now on; nothing: it is gone.
struct ConfigChange {
  std::string ns;
  std::string key;
  std::optional<std::string> value;
};
using HookWork = std::variant<HookDefinition, HookCall, AbandonedHook, ConfigChange>;

struct HookResult {
  HookCallId id{};
  HookOutcome outcome;
  // Of an EnqueueVerdict: it follows from the job's headers, priority and scheduling attributes, so
  // that the same script would say the same of every job that has the same of these.
  bool repeatable = false;
};

}  // namespace reprise
