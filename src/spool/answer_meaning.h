// AnswerMeaning: what the drain makes of an endpoint's answer to a batch, by its status first
// (docs/spool.md, "Draining", 3, 5 and 6).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "spool/ingest_endpoint.h"
#include "spool/ingest_reply.h"

namespace reprise::spool {

enum class Meaning : std::uint8_t {
  verdicts,     // it tells about each event
  bad_request,  // one of the events spoils the whole batch
  trouble,      // no event's fault, and it may pass
  refused,      // no event's fault, and a person must fix it
};

struct Judgement {
  Meaning meaning = Meaning::trouble;
  std::vector<EventVerdict> verdicts;  // of Meaning::verdicts: one for each event
  std::string reason;                  // of trouble and refused, for people
  std::optional<Duration> patience;    // how long the endpoint wants to be left alone
};

// `url` is for the reason; `count` events were sent.
Judgement judge(const IngestAnswer& answer, const std::string& url, std::size_t count);

}  // namespace reprise::spool
