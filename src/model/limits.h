// Limits: how much a client may ask for at once. Each has its own error (base/errc.h) and its own
// setting (docs/configuration.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace reprise {

struct Limits {
  std::uint64_t max_payload_bytes = 1ULL << 20;
  std::uint64_t max_batch_jobs = 1000;
  std::uint64_t max_batch_bytes = 16ULL << 20;
  std::uint64_t max_headers = 64;
  std::uint64_t max_header_bytes = 4096;  // one header, name and value together
  std::uint64_t max_key_bytes = 512;
  std::uint64_t max_error_bytes = 16384;
  std::uint64_t max_claim_jobs = 1000;
  std::uint64_t max_waiting_claims = 10000;
  // Of queues that do not say.
  std::uint32_t hook_timeout_ms = 10;
  std::uint64_t hook_memory_bytes = 1ULL << 20;
};

inline constexpr std::uint64_t kMaxNameChars = 200;
inline constexpr std::uint64_t kMaxWorkerNameBytes = 200;
inline constexpr std::uint64_t kMaxErrorTypeBytes = 200;
inline constexpr std::uint64_t kMaxScriptBytes = 64ULL << 10;
inline constexpr std::uint32_t kLongestHookTimeoutMs = 1000;
inline constexpr std::uint64_t kLeastHookMemoryBytes = 128ULL << 10;
inline constexpr std::uint64_t kMostHookMemoryBytes = 64ULL << 20;
inline constexpr std::uint32_t kMaxWeight = 1000;
inline constexpr std::size_t kMaxThrottleKeys = 16;
inline constexpr std::size_t kMaxSchedulingKeyBytes = 200;

inline constexpr std::size_t kMaxIngestedEvents = 100;
inline constexpr std::size_t kMaxEventTypeBytes = 200;
// Ids of ingested events are known again for so long, also in queues with a shorter key_window.
inline constexpr Duration kLeastEventWindow = std::chrono::hours(24);

// [A-Za-z0-9][A-Za-z0-9._-]{0,199}. `what` is "queue" or "namespace", for the message.
Status check_name(std::string_view what, std::string_view name);

// What is wrong with a fairness key or the name of a throttle, to be read after the field's name:
// 1 to 200 bytes of UTF-8 are taken. Empty: nothing.
std::string scheduling_key_problem(std::string_view key);

// The same for the type of an event: 1 to 200 bytes of UTF-8 without control characters.
std::string event_type_problem(std::string_view type);

}  // namespace reprise
