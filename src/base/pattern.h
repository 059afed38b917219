// Patterns for names and types: "*" stands for any characters, also none; everything else for
// itself.
#pragma once

#include <string_view>

namespace reprise {

// In time that is at most the product of the two lengths.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace reprise
