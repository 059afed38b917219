// The reply to an ingest: what became of each event, in the order of the request.
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/commands.h"
#include "server/response.h"
#include "server/server_stats.h"

namespace reprise::server {

// One for each event of the request: what its queue said, or why it did not get so far.
using IngestResults = std::vector<Result<PushedJob>>;

// An error that is none of the event's: sent again later, it may well be taken. Producers count
// what is rejected against the event, so nothing of the server's passing trouble may be.
bool is_passing(Errc code);

IngestCounts count_results(const IngestResults& results);

// 202 with a result for each, or the error that keeps all of them out.
Response ingest_response(const IngestResults& results);

}  // namespace reprise::server
