// TimerId: what a moment is waited for, as text that people and scripts see:
// "queue-poll:<namespace>/<worker>" and "queue-retry:<namespace>/<queue>:<job>".
// Names hold neither '/' nor ':', so a text has one meaning; parse() takes no other spelling.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace reprise {

struct TimerId {
  enum class Kind : std::uint8_t {
    queue_poll,   // a worker lists its external queue
    queue_retry,  // a failed job is due
  };
  Kind kind{};
  std::string ns;
  std::string name;  // of the worker, or of the queue
  Seq job = 0;       // of a retry

  std::string to_text() const;
  // Errc::invalid_field: nothing that to_text() gives.
  static Result<TimerId> parse(std::string_view text);

  friend bool operator==(const TimerId&, const TimerId&) = default;
};

}  // namespace reprise
