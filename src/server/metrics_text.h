// The text of GET /metrics, in Prometheus' exposition format. Names and labels are those of
// docs/api.md; a test compares the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/metrics.h"
#include "model/queue.h"
#include "model/throttle.h"
#include "model/webhook.h"
#include "server/beanstalk_stats.h"
#include "server/server_stats.h"
#include "worker/worker_service.h"

namespace reprise::server {

// Per-queue metrics name this many queues; the others are summed under queue="_other".
inline constexpr std::size_t kMaxQueuesInMetrics = 1000;

// So many throttles, those with the most waiting.
inline constexpr std::size_t kMaxThrottlesInMetrics = 20;

struct ProcessNumbers {
  std::uint64_t resident_bytes = 0;
  double start_time_seconds = 0;  // since 1970
};
// From /proc; zeros where that fails.
ProcessNumbers read_process_numbers();

struct MetricsInput {
  const std::vector<QueueStats>& queues;        // by name
  const std::vector<ThrottleStats>& throttles;  // by namespace and key
  const BrokerMetrics& broker;
  std::uint64_t event_subscribers = 0;
  const ServerStats& server;
  ProcessNumbers process;
  WebhookStats webhooks;
  worker::WorkerMetrics workers{};
  BeanstalkStats beanstalk{};
};
std::string metrics_text(const MetricsInput& input);

}  // namespace reprise::server
