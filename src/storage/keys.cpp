#include "storage/keys.h"

#include <limits>

#include "base/bytes.h"
#include "base/check.h"

namespace reprise::storage {
namespace {

constexpr std::size_t kJobKeyBytes = sizeof(QueueNumber) + sizeof(Seq);
constexpr std::string_view kTotalsPrefix = "totals/";

}  // namespace

std::string job_key(JobKey job) {
  std::string key;  // 12 bytes: inside the string object, no allocation
  append_big_endian(key, job.queue);
  append_big_endian(key, job.seq);
  return key;
}

std::optional<JobKey> parse_job_key(std::string_view key) {
  if (key.size() != kJobKeyBytes) return std::nullopt;
  return JobKey{.queue = read_big_endian<QueueNumber>(key.data()),
                .seq = read_big_endian<Seq>(key.data() + sizeof(QueueNumber))};
}

std::string idempotency_key(QueueNumber queue, std::string_view key) {
  std::string result;
  result.reserve(sizeof(QueueNumber) + key.size());
  append_big_endian(result, queue);
  result.append(key);
  return result;
}

std::optional<IdempotencyKeyParts> parse_idempotency_key(std::string_view key) {
  if (key.size() < sizeof(QueueNumber)) return std::nullopt;
  return IdempotencyKeyParts{.queue = read_big_endian<QueueNumber>(key.data()),
                             .key = key.substr(sizeof(QueueNumber))};
}

std::string queue_key(const QueueName& name) {
  std::string key;
  key.reserve(name.ns.size() + 1 + name.name.size());
  key.append(name.ns);
  key.push_back('\0');
  key.append(name.name);
  return key;
}

std::string totals_key(QueueNumber queue) {
  std::string key(kTotalsPrefix);
  append_big_endian(key, queue);
  return key;
}

std::optional<QueueNumber> parse_totals_key(std::string_view key) {
  if (key.size() != kTotalsPrefix.size() + sizeof(QueueNumber)) return std::nullopt;
  if (!key.starts_with(kTotalsPrefix)) return std::nullopt;
  return read_big_endian<QueueNumber>(key.data() + kTotalsPrefix.size());
}

std::string queue_begin(QueueNumber queue) {
  std::string key;
  append_big_endian(key, queue);
  return key;
}

std::string queue_end(QueueNumber queue) {
  REPRISE_CHECK(queue != std::numeric_limits<QueueNumber>::max());
  return queue_begin(queue + 1);
}

}  // namespace reprise::storage
