// JSON for people to read: one member a line, two spaces a level.
#pragma once

#include <string>
#include <string_view>

namespace reprise::cli {

// `json` is one valid JSON value. Its tokens stay as they are written ("1.0" stays "1.0"), only the
// white space between them changes; controls in strings are escaped, as everywhere.
std::string indented_json(std::string_view json);

}  // namespace reprise::cli
