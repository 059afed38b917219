// Keys: how the things of the model are named in their keyspaces. Numbers are big-endian, so that
// byte order is queue and push order. docs/format.md shows them byte by byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "model/queue.h"

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

// meta.
inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kCheckpointKey = "checkpoint";
inline constexpr std::string_view kServerKey = "server";
std::string totals_key(QueueNumber queue);  // "totals/" queue u32
std::optional<QueueNumber> parse_totals_key(std::string_view key);

// All keys of one queue in jobs, states, dead or keys are in [queue_begin, queue_end).
std::string queue_begin(QueueNumber queue);
std::string queue_end(QueueNumber queue);

}  // namespace reprise::storage
