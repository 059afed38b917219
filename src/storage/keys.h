// Keys: how the things of the model are named in their keyspaces. Numbers are big-endian, so that
// byte order is queue and push order. docs/format.md shows them byte by byte.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/webhook.h"

namespace reprise::storage {

// jobs, states, dead: queue u32, seq u64.
std::string job_key(JobKey job);
std::optional<JobKey> parse_job_key(std::string_view key);

// keys: queue u32, then the idempotency key's bytes.
std::string idempotency_key(QueueNumber queue, std::string_view key);
struct IdempotencyKeyParts {
  QueueNumber queue{};
  std::string_view key;
};
std::optional<IdempotencyKeyParts> parse_idempotency_key(std::string_view key);

// queues: namespace, 0x00, name (neither may hold a 0x00).
std::string queue_key(const QueueName& name);

// endings: queue u32, what became of the job u8, when i64 (since 1970, in microseconds), seq u64.
enum class EndKind : std::uint8_t { dead = 0, completed = 1 };
struct EndingKey {
  QueueNumber queue{};
  EndKind kind{};
  Timestamp at{};
  Seq seq{};
  friend auto operator<=>(const EndingKey&, const EndingKey&) = default;
};
std::string ending_key(const EndingKey& ending);
std::optional<EndingKey> parse_ending_key(std::string_view key);
// All endings of one kind in a queue are in [endings_begin, endings_end).
std::string endings_begin(QueueNumber queue, EndKind kind);
std::string endings_end(QueueNumber queue, EndKind kind);

// meta.
inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kCheckpointKey = "checkpoint";
inline constexpr std::string_view kServerKey = "server";
std::string totals_key(QueueNumber queue);  // "totals/" queue u32
std::optional<QueueNumber> parse_totals_key(std::string_view key);

// "config/" namespace, 0x00, key.
inline constexpr std::string_view kConfigPrefix = "config/";
std::string config_key(std::string_view ns, std::string_view key);
// "note/" key.
inline constexpr std::string_view kNotePrefix = "note/";
std::string note_key(std::string_view key);
// "throttle/" namespace, 0x00, key.
inline constexpr std::string_view kThrottlePrefix = "throttle/";
std::string throttle_key(std::string_view ns, std::string_view key);

// "operation/" id u64, "audit/" number u64, "webhook/" died_at i64, queue u32, seq u64.
inline constexpr std::string_view kOperationPrefix = "operation/";
inline constexpr std::string_view kAuditPrefix = "audit/";
inline constexpr std::string_view kWebhookPrefix = "webhook/";
std::string operation_key(OperationId id);
std::string audit_key(std::uint64_t number);
std::string webhook_key(const WebhookKey& webhook);
std::optional<WebhookKey> parse_webhook_key(std::string_view key);
// The end of all keys that begin so.
std::string prefix_end(std::string_view prefix);

// All keys of one queue in a keyspace of kQueueKeyspaces are in [queue_begin, queue_end).
std::string queue_begin(QueueNumber queue);
std::string queue_end(QueueNumber queue);

}  // namespace reprise::storage
