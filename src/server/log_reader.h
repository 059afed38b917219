// Logs are bytes, replies are text: what is read here ends between two characters.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "worker/worker_service.h"

namespace reprise::server {

// How many bytes at the end begin a UTF-8 character that is not whole: 0 to 3.
std::size_t unfinished_bytes(std::string_view text);

// Whose log it is: a call of the service with all but the query filled in.
using LogSource = std::function<void(worker::LogQuery, Done<worker::LogPart>)>;

// Reads a part from `source`. A character whose end is still to come is left for the next part;
// when there is nothing but that, the wait goes on, so that whoever follows a log is not sent round
// in circles. Of a tail that begins within a character, the rest of that one is left out.
void read_log(LogSource source, worker::LogQuery query, Done<worker::LogPart> done);

}  // namespace reprise::server
