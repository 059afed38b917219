#include "storage/keys.h"

#include <array>
#include <limits>

#include "base/bytes.h"
#include "base/check.h"

namespace reprise::storage {
namespace {

constexpr std::size_t kJobKeyBytes = sizeof(QueueNumber) + sizeof(Seq);
constexpr std::string_view kTotalsPrefix = "totals/";
constexpr std::size_t kEndingKeyBytes = sizeof(QueueNumber) + 1 + 8 + sizeof(Seq);
constexpr std::size_t kWebhookKeyBytes = kWebhookPrefix.size() + 8 + sizeof(QueueNumber) + 8;

// Times after 1970, which all of ours are, are in order as bytes too.
void append_time(std::string& out, Timestamp time) {
  append_big_endian(out, static_cast<std::uint64_t>(time.time_since_epoch().count()));
}

Timestamp read_time(const char* from) {
  return Timestamp(Duration(static_cast<std::int64_t>(read_big_endian<std::uint64_t>(from))));
}

std::string numbered_key(std::string_view prefix, std::uint64_t number) {
  std::string key(prefix);
  append_big_endian(key, number);
  return key;
}

}  // namespace

std::string job_key(JobKey job) {
  std::array<char, kJobKeyBytes> bytes;
  write_big_endian(bytes.data(), job.queue);
  write_big_endian(bytes.data() + sizeof(job.queue), job.seq);
  return {bytes.data(), bytes.size()};  // inside the string object: no allocation
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

std::string ending_key(const EndingKey& ending) {
  std::string key = endings_begin(ending.queue, ending.kind);
  append_time(key, ending.at);
  append_big_endian(key, ending.seq);
  return key;
}

std::optional<EndingKey> parse_ending_key(std::string_view key) {
  if (key.size() != kEndingKeyBytes) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(key[sizeof(QueueNumber)]);
  if (kind > static_cast<std::uint8_t>(EndKind::completed)) return std::nullopt;
  const char* rest = key.data() + sizeof(QueueNumber) + 1;
  return EndingKey{.queue = read_big_endian<QueueNumber>(key.data()),
                   .kind = static_cast<EndKind>(kind),
                   .at = read_time(rest),
                   .seq = read_big_endian<Seq>(rest + 8)};
}

std::string endings_begin(QueueNumber queue, EndKind kind) {
  std::string key = queue_begin(queue);
  key.push_back(static_cast<char>(kind));
  return key;
}

std::string endings_end(QueueNumber queue, EndKind kind) {
  return prefix_end(endings_begin(queue, kind));
}

std::string config_key(std::string_view ns, std::string_view key) {
  std::string result(kConfigPrefix);
  result.append(ns).push_back('\0');
  result.append(key);
  return result;
}

std::string note_key(std::string_view key) { return std::string(kNotePrefix).append(key); }

std::string throttle_key(std::string_view ns, std::string_view key) {
  std::string result(kThrottlePrefix);
  result.append(ns).push_back('\0');
  result.append(key);
  return result;
}

std::string operation_key(OperationId id) { return numbered_key(kOperationPrefix, id); }

std::string audit_key(std::uint64_t number) { return numbered_key(kAuditPrefix, number); }

std::string webhook_key(const WebhookKey& webhook) {
  std::string key(kWebhookPrefix);
  append_time(key, webhook.died_at);
  append_big_endian(key, webhook.queue);
  append_big_endian(key, webhook.seq);
  return key;
}

std::optional<WebhookKey> parse_webhook_key(std::string_view key) {
  if (key.size() != kWebhookKeyBytes || !key.starts_with(kWebhookPrefix)) return std::nullopt;
  const char* at = key.data() + kWebhookPrefix.size();
  return WebhookKey{.died_at = read_time(at),
                    .queue = read_big_endian<QueueNumber>(at + 8),
                    .seq = read_big_endian<Seq>(at + 8 + sizeof(QueueNumber))};
}

// Our prefixes do not end in 0xFF.
std::string prefix_end(std::string_view prefix) {
  std::string end(prefix.substr(0, prefix.find_last_not_of('\xFF') + 1));
  REPRISE_CHECK(!end.empty());
  ++end.back();
  return end;
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
