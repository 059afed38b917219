// Adding many events to a spool that may be full: all that fits, in their order.
// Pure but for AddEvents, so tests bring their own outbox.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spool/outbox.h"
#include "spool/spool_files.h"

namespace reprise::spool {

// Outbox::add().
using AddEvents = std::function<Result<Added>(const std::vector<NewFile>& events)>;

struct Stored {
  std::size_t count = 0;  // the first so many of them are durable, or were there already
  Added added;
  std::optional<Error> error;  // why there are no more
};
// A group that the quota has no room for is halved until it fits, or one event does not.
Stored add_what_fits(const AddEvents& add, std::vector<NewFile> events);

}  // namespace reprise::spool
