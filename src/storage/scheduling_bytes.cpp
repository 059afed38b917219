#include "storage/scheduling_bytes.h"

#include <limits>

#include "base/bytes.h"

namespace reprise::storage {
namespace {

// A fairness key is never empty, so that nothing can stand for the default.
std::string_view stored_fairness_key(const Scheduling& scheduling) {
  const bool is_default = scheduling.fairness_key == kDefaultFairnessKey;
  return is_default ? std::string_view() : scheduling.fairness_key;
}

}  // namespace

std::string encode_scheduling(const Scheduling& scheduling) {
  std::string bytes;
  if (scheduling == Scheduling{}) return bytes;
  ByteWriter out(bytes);
  out.bytes(stored_fairness_key(scheduling));
  out.varint(scheduling.weight);
  for (const std::string& key : scheduling.throttle_keys) out.bytes(key);
  return bytes;
}

std::optional<Scheduling> decode_scheduling(std::string_view bytes) {
  Scheduling scheduling;
  if (bytes.empty()) return scheduling;
  ByteReader in(bytes);
  if (const std::string_view key = in.bytes(); !key.empty()) scheduling.fairness_key = key;
  const std::uint64_t weight = in.varint();
  if (weight > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  scheduling.weight = static_cast<std::uint32_t>(weight);
  while (!in.rest().empty()) scheduling.throttle_keys.emplace_back(in.bytes());
  if (in.failed()) return std::nullopt;
  return scheduling;
}

}  // namespace reprise::storage
