// Text that a shell has taken the quotes off, as the command that it starts gets it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::runbook {

// The text, and where each of its characters stood; at last, where the end was.
struct Decoded {
  std::string text;
  std::vector<std::size_t> places;

  void add(char c, std::size_t place) {
    text.push_back(c);
    places.push_back(place);
  }
};

// A word without its quotes. What the shell expands in it stays as it is written.
Decoded decode_word(std::string_view text, std::size_t begin, std::size_t end);
// What stands between backticks.
Decoded decode_backticks(std::string_view text, std::size_t begin, std::size_t end,
                         bool in_double_quotes);

}  // namespace reprise::runbook
