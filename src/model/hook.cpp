#include "model/hook.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/check.h"
#include "model/limits.h"

namespace reprise {
namespace {

constexpr std::array<std::string_view, kHookKindCount> kHookNames = {"on_enqueue", "on_failure"};
constexpr std::array<std::string_view, kHookFaultCount> kFaultNames = {
    "error", "timeout", "memory", "invalid_result", "host_lost", "breaker_open"};
constexpr std::array<std::string_view, 3> kOnHookErrorNames = {"retry", "policy", "dlq"};
constexpr std::array<std::string_view, 3> kBreakerNames = {"closed", "open", "trial"};
constexpr std::size_t kVersionBytes = 6;

template <class Enum>
std::size_t index(Enum value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

std::string_view hook_name(HookKind hook) { return kHookNames[index(hook)]; }

std::string_view hook_fault_name(HookFault fault) { return kFaultNames[index(fault)]; }

std::string_view on_hook_error_name(OnHookError what) { return kOnHookErrorNames[index(what)]; }

std::optional<OnHookError> on_hook_error_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kOnHookErrorNames, name);
  if (found == kOnHookErrorNames.end()) return std::nullopt;
  return static_cast<OnHookError>(found - kOnHookErrorNames.begin());
}

std::string_view breaker_state_name(BreakerState state) { return kBreakerNames[index(state)]; }

std::string hook_version(std::string_view source) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(source.data(), source.size(), digest.data(), &size, EVP_sha256(), nullptr);
  REPRISE_CHECK(done == 1 && size >= kVersionBytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string version;
  for (std::size_t i = 0; i < kVersionBytes; ++i) {
    version += kDigits[digest[i] >> 4];
    version += kDigits[digest[i] & 0xF];
  }
  return version;
}

void apply_verdict(Scheduling& scheduling, const EnqueueVerdict& verdict) {
  if (verdict.fairness_key) scheduling.fairness_key = *verdict.fairness_key;
  if (verdict.weight) scheduling.weight = *verdict.weight;
  if (verdict.throttle_keys) {
    scheduling.throttle_keys.clear();
    for (const std::string& key : *verdict.throttle_keys) add_throttle_key(scheduling, key);
  }
}

HookLimits hook_limits(const QueueConfig& config, const Limits& limits) {
  return {
      .timeout = std::chrono::milliseconds(config.hook_timeout_ms.value_or(limits.hook_timeout_ms)),
      .memory_bytes = config.hook_memory_bytes.value_or(limits.hook_memory_bytes)};
}

}  // namespace reprise
