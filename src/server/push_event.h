// The data of an event of type reprise.push, a job that could not be pushed when it was made:
// {"namespace": "default", "queue": "orders", "create": false, "job": {"payload": …, …}}.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/commands.h"
#include "model/limits.h"
#include "model/queue.h"

namespace reprise::server {

inline constexpr std::string_view kPushEventType = "reprise.push";

struct PushEvent {
  QueueName queue;
  bool create = false;
  NewJob job;
};

// `data` must be valid JSON; `path` is its place in the request, for messages: "events[3].data".
Result<PushEvent> parse_push_event(std::string_view data, const Limits& limits,
                                   const std::string& path);

// The job's delay and ttl count from when it was made, `elapsed` ago. A ttl that is over leaves
// the least: the job is there, and expires.
void let_pass(NewJob& job, Duration elapsed);

}  // namespace reprise::server
