// The man page, generated from the command tree.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_tree.h"

namespace reprise::cli {

// reprise(1) in roff.
std::string man_page(const CommandTree& root, std::string_view version);

// Text that means itself in roff: backslashes, leading dots and quotes, dashes that can be searched
// for and copied.
std::string escape_roff(std::string_view text);

}  // namespace reprise::cli
