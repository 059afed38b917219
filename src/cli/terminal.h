// Terminal: what is known about the three standard streams, and the one place that knows colours.
// Detected once per run; tests make their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::cli {

enum class Style : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

struct Terminal {
  bool in_is_tty = false;
  bool out_is_tty = false;
  bool err_is_tty = false;
  bool colour = false;       // of stdout
  std::size_t columns = 80;  // of stdout, when it is a terminal

  // Colour is off with NO_COLOR set (to anything but nothing) or TERM=dumb.
  static Terminal detect();

  // Somebody is there to read a question and to answer it.
  bool can_ask() const { return in_is_tty && err_is_tty; }
};

// `text` in that style, or as it is when `colour` is false.
std::string painted(std::string_view text, Style style, bool colour);

// Asks on stderr and reads one line from stdin; only y and yes mean yes.
bool ask_yes_no(std::string_view question);

}  // namespace reprise::cli
