#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace reprise::cli {
namespace {

std::string_view code_of(Style style) {
  switch (style) {
    case Style::bold:
      return "1";
    case Style::dim:
      return "2";
    case Style::red:
      return "31";
    case Style::green:
      return "32";
    case Style::yellow:
      return "33";
    case Style::cyan:
      return "36";
    case Style::plain:
      break;
  }
  return "";
}

bool colour_wanted() {
  if (const char* no_colour = std::getenv("NO_COLOR"); no_colour != nullptr && *no_colour != '\0') {
    return false;
  }
  const char* term = std::getenv("TERM");
  return term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

}  // namespace

Terminal Terminal::detect() {
  Terminal terminal{.in_is_tty = isatty(STDIN_FILENO) == 1,
                    .out_is_tty = isatty(STDOUT_FILENO) == 1,
                    .err_is_tty = isatty(STDERR_FILENO) == 1};
  terminal.colour = terminal.out_is_tty && colour_wanted();
  winsize size{};
  if (terminal.out_is_tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  return terminal;
}

std::string painted(std::string_view text, Style style, bool colour) {
  if (!colour || style == Style::plain || text.empty()) return std::string(text);
  return std::string("\x1b[").append(code_of(style)).append("m").append(text).append("\x1b[0m");
}

bool ask_yes_no(std::string_view question) {
  std::fprintf(stderr, "%.*s [y/N] ", static_cast<int>(question.size()), question.data());
  std::fflush(stderr);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace reprise::cli
