// The JSON views of docs/api.md: jobs, queues, results. Field names are the contract; they are
// written here, what jobs share with dead letters in model/.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/json_writer.h"
#include "broker/browse.h"
#include "engine/commands.h"
#include "engine/event.h"
#include "model/queue.h"
#include "server/response.h"

namespace reprise::server {

// Lists leave the history and the envelope out.
enum class JobDetail : std::uint8_t { brief, full };
void write_job(JsonWriter& out, const QueueName& queue, const JobView& view, JobDetail detail);

void write_claimed_job(JsonWriter& out, const ClaimedJob& job);
void write_queue(JsonWriter& out, const QueueStats& stats);
void write_event(JsonWriter& out, const Event& event);

// Multi-item replies: {"results": [{"index", "status", …}]} with 200 when an item succeeded or
// there was none, otherwise with the status of the first error.
Response push_response(const PushReply& reply);
Response ack_response(const ItemResults<Acked>& results);
Response fail_response(const ItemResults<Failed>& results);
Response release_response(const ItemResults<Released>& results);
Response extend_response(const ItemResults<Extended>& results);

// {"jobs": […]}; the response remembers the leases it hands out.
Response claim_response(const ClaimReply& reply);

}  // namespace reprise::server
