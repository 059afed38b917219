// Shell completion, generated from the command tree.
#pragma once

#include <string>

#include "cli/command_tree.h"

namespace reprise::cli {

std::string bash_completion(const CommandTree& root);
std::string zsh_completion(const CommandTree& root);

}  // namespace reprise::cli
