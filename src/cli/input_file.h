// Whole texts from files that flags name; "-" is standard input. What cannot be read, or is no
// UTF-8 text, is wrong usage: CLI::ValidationError with the flag and the file.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

// `flag` is for messages.
std::string read_text_file(const std::string& flag, const std::string& path);
// The same for the source of a hook, which must not be empty: an empty text would take it away.
std::string read_script_file(const std::string& flag, const std::string& path);

// CLI::ValidationError: more than one of the paths is standard input. To be asked before the first
// is read, which may wait for a person.
void check_one_standard_input(const std::vector<std::string>& paths);

}  // namespace reprise::cli
