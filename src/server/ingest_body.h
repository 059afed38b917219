// The body of an ingest: {"events": [{"id": …, "type": …, "timestamp": …, "data": …}, …]}.
// Each event becomes a job whose payload is the event, the bytes that came: nothing is parsed and
// written again. An event of type reprise.push is no payload but carries a job, and says where it
// goes.
//
// What is wrong with one event alone becomes its error, and the others go on. What makes the
// request as a whole doubtful (no JSON, unknown or repeated fields beside the events, none or too
// many of them, too much together) refuses all of it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "engine/commands.h"
#include "model/limits.h"
#include "model/queue.h"

namespace reprise::server {

struct IngestEvent {
  NewJob job;
  std::string type;
  std::optional<QueueName>
      queue;           // of a reprise.push; nothing: whatever the request or a route says
  bool create = true;  // make the queue with defaults when it is not there
};

// `now` is what the delay and the ttl of a reprise.push have partly passed at.
Result<std::vector<Result<IngestEvent>>> parse_ingest_body(std::string_view body,
                                                           const Limits& limits, Timestamp now);

}  // namespace reprise::server
