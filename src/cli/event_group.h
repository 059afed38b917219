// New events, as the commands make them that add to the spool.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/ulid.h"

namespace reprise::cli {

// A group is stored when it has so much: one sync for many events, and a bounded memory.
inline constexpr std::size_t kGroupEvents = 5000;
inline constexpr std::size_t kGroupBytes = 8 << 20;

// Its time is that of its id. `data` is one JSON value. Errc::payload_too_large: it is beyond what
// can be sent; the message has the size. Errc::invalid_request: it is nested too deep for that.
Result<std::string> make_event(const Ulid& id, const std::string& type, std::string_view data);

}  // namespace reprise::cli
