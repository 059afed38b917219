// The JSON views of hooks: what one decided when it was tried, and how those of a queue do.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/json_writer.h"
#include "broker/broker.h"
#include "server/response.h"

namespace reprise::server {

// "hooks": {…}, an entry for each hook that the queue has.
void write_hooks(JsonWriter& out, const QueueStats& stats);

Response hook_trial_response(HookKind hook, const std::vector<HookMessage>& samples,
                             const HookTrialReply& reply);
Response hook_replay_response(const HookReplayReply& reply);

}  // namespace reprise::server
