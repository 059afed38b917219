// Limits: how much a client may ask for at once. Each has its own error (base/errc.h) and its own
// setting (docs/configuration.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

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
};

inline constexpr std::uint64_t kMaxNameChars = 200;
inline constexpr std::uint64_t kMaxWorkerNameBytes = 200;
inline constexpr std::uint64_t kMaxErrorTypeBytes = 200;

// [A-Za-z0-9][A-Za-z0-9._-]{0,199}. `what` is "queue" or "namespace", for the message.
Status check_name(std::string_view what, std::string_view name);

}  // namespace reprise
