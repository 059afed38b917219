// Text from outside as valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace reprise {

// Each byte that belongs to no valid character becomes U+FFFD.
std::string valid_utf8(std::string_view bytes);

}  // namespace reprise
