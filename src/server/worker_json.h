// The JSON views of projects, workers, external queues and runs; docs/api.md is the contract.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.h"
#include "server/response.h"
#include "worker/worker_service.h"

namespace reprise::server {

void write_external_queue(JsonWriter& out, const worker::ExternalQueueView& queue);

Response project_response(const worker::ProjectView& project);
Response projects_response(const std::vector<worker::ProjectView>& projects);

Response workers_response(const worker::WorkerList& list);
// A multi-item reply: 200 when an item succeeded or there was none, otherwise the status of the
// first error.
Response worker_items_response(const worker::WorkerReply& reply);
Response external_queue_response(const worker::ExternalQueueView& queue);

Response run_response(const worker::RunView& run);
Response runs_response(const std::vector<worker::RunView>& runs);
// Bytes that are not UTF-8 become U+FFFD.
Response log_response(const worker::LogPart& part);

Response timers_response(const std::vector<worker::TimerView>& timers);

}  // namespace reprise::server
