// The JSON views of what decides who is served next: fairness keys and the breaker of a queue, and
// throttles.
#pragma once

#include <vector>

#include "base/json_writer.h"
#include "model/queue.h"
#include "model/throttle.h"
#include "server/response.h"

namespace reprise::server {

// "breaker": {…}, or null for a queue without one.
void write_breaker(JsonWriter& out, const QueueStats& stats);
// "keys": {…}
void write_keys(JsonWriter& out, const KeysStats& keys);

Response throttle_response(const ThrottleStats& stats);
Response throttles_response(const std::vector<ThrottleStats>& throttles);
Response throttle_deleted_response(const ThrottleStats& last);

}  // namespace reprise::server
