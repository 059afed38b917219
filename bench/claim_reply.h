// The reply to a claim: its tokens, and its payloads checked byte for byte.
#pragma once

#include <string>
#include <vector>

#include "http_connection.h"
#include "payload_source.h"

namespace reprise::bench {

struct ClaimedJobs {
  std::vector<std::string> tokens;
  std::vector<Stamp> stamps;  // as many as tokens
};

// Knows the reply's shape, not JSON: for each job its token, then its payload of a known length.
// Throws LoadError when the status is not 200 or a payload is not the one that was pushed.
ClaimedJobs read_claim_reply(const HttpReply& reply, const PayloadSource& payloads);

}  // namespace reprise::bench
