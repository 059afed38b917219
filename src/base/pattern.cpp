#include "base/pattern.h"

#include <cstddef>

namespace reprise {

// What an earlier star has taken can stay as it is: whatever it could give back, the last star can
// take as well. So only the last one is ever tried again.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t at = 0;
  std::size_t in_text = 0;
  std::size_t behind_star = std::string_view::npos;
  std::size_t star_ends = 0;  // where in the text what the star stands for ends
  while (in_text < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      behind_star = ++at;
      star_ends = in_text;
    } else if (at < pattern.size() && pattern[at] == text[in_text]) {
      ++at;
      ++in_text;
    } else if (behind_star != std::string_view::npos) {
      at = behind_star;
      in_text = ++star_ends;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace reprise
