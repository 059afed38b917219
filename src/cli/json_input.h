// JSON that a person gives: an argument, a line of a file.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace reprise::cli {

// `what` ("the payload") begins the message of Errc::invalid_request: "the payload is not valid
// JSON: expected ':' at column 5".
Result<Json> parse_json_input(std::string_view what, std::string_view text);

// The same for text that is passed on as it is: numbers may be of any size.
Status check_json_input(std::string_view what, std::string_view text);

}  // namespace reprise::cli
