// Spooled events: what a file in queue/ holds (docs/spool.md, "The directory"). Text in, text out;
// nothing here touches a file.
// The producer's bytes are never rewritten: bookkeeping is cut out before an event is sent, and
// added behind the last field when it is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace reprise::spool {

inline constexpr std::string_view kBatchHead = R"({"events":[)";
inline constexpr std::string_view kBatchTail = "]}";
inline constexpr std::size_t kMaxBatchBytes = 1 << 20;  // a whole request
inline constexpr std::size_t kMaxBatchEvents = 100;     // the protocol's limit
// Beyond it an event fits no batch.
inline constexpr std::size_t kMaxEventBytes =
    kMaxBatchBytes - kBatchHead.size() - kBatchTail.size();
inline constexpr std::size_t kMaxLastErrorBytes = 4096;
// A file in queue/ with the most bookkeeping we write: an error takes up to six times its bytes as
// JSON. What is larger is too large, without a look into it.
inline constexpr std::size_t kMaxEventFileBytes = kMaxEventBytes + 6 * kMaxLastErrorBytes + 1024;

struct SpooledEvent {
  std::string id;    // a ULID, as it was written
  std::string type;  // empty: none, or no text
  std::string json;  // what is sent: the object without bookkeeping
  // Bookkeeping. Members of other kinds than these count as absent.
  std::uint32_t attempts = 0;
  std::string first_attempt_at;  // ISO 8601; empty: never sent
  std::string last_error;        // cut to kMaxLastErrorBytes, at a character
};

// Takes a file's bytes apart. Errc::corrupt says, for people, why this is no event: what is wrong
// with the JSON and where, that it is no object, that `id` is missing or no ULID. Of a field that
// is there twice the last one counts.
Result<SpooledEvent> parse_event(std::string_view bytes);

// Where an event of this id is stored: the id in upper case, so that names sort by time.
std::string event_file_name(std::string_view id);
// The text of its file: `json` with the bookkeeping that is not empty.
std::string event_file_text(const SpooledEvent& event);

struct NewEvent {
  std::string id;
  std::string type;
  Timestamp timestamp;
  std::string_view data = "null";  // one JSON value, spliced in as it is
};
std::string new_event_json(const NewEvent& event);

}  // namespace reprise::spool
