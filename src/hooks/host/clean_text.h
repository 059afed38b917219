// Text of scripts, made fit for logs and answers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::hooks {

// One line of valid UTF-8 of at most `max_bytes`: U+FFFD for each byte that is in no character, a
// space for each control character, and "..." in place of what is too much.
std::string clean_text(std::string_view text, std::size_t max_bytes);

}  // namespace reprise::hooks
