// ServerState: what the server as a whole must remember between runs.
#pragma once

#include "base/ids.h"
#include "base/time.h"

namespace reprise {

struct ServerState {
  Seq next_seq = 1;
  QueueNumber next_queue = 1;
  std::uint64_t next_operation = 1;
  std::uint64_t next_audit = 1;
  // The latest time any change was made at: time never runs backwards, across restarts too.
  Timestamp clock{};
  friend bool operator==(const ServerState&, const ServerState&) = default;
};

}  // namespace reprise
