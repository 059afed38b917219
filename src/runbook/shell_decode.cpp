#include "runbook/shell_decode.h"

namespace reprise::runbook {
namespace {

// What a backslash in $'…' makes of the next character; 0: more than one has to be looked at.
char ansi_meaning(char c) {
  constexpr std::string_view kLetters = "abefnrtv\\'\"?";
  constexpr std::string_view kMeanings = "\a\b\x1b\f\n\r\t\v\\'\"?";
  const std::size_t index = kLetters.find(c);
  return index == std::string_view::npos ? '\0' : kMeanings[index];
}

}  // namespace

Decoded decode_word(std::string_view text, std::size_t begin, std::size_t end) {
  Decoded out;
  char quote = '\0';  // ', ", or $ for $'
  for (std::size_t at = begin; at < end; ++at) {
    const char c = text[at];
    const char next = at + 1 < end ? text[at + 1] : '\0';
    if (quote == '\0' && c == '$' && next == '\'') {
      quote = '$';
      ++at;
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != '\0' && c == (quote == '$' ? '\'' : quote)) {
      quote = '\0';
    } else if (c == '\\' && quote == '$' && ansi_meaning(next) != '\0') {
      out.add(ansi_meaning(next), at++);
    } else if (c == '\\' && next != '\0' &&
               (quote == '\0' || (quote == '"' && std::string_view("$`\"\\").find(next) !=
                                                      std::string_view::npos))) {
      out.add(next, at++);
    } else {
      out.add(c, at);
    }
  }
  out.places.push_back(end);
  return out;
}

Decoded decode_backticks(std::string_view text, std::size_t begin, std::size_t end,
                         bool in_double_quotes) {
  Decoded out;
  const std::string_view escapable = in_double_quotes ? "$`\\\"" : "$`\\";
  for (std::size_t at = begin; at < end; ++at) {
    const bool escapes =
        text[at] == '\\' && at + 1 < end && escapable.find(text[at + 1]) != std::string_view::npos;
    if (escapes) {
      out.add(text[at + 1], at);
      ++at;
    } else {
      out.add(text[at], at);
    }
  }
  out.places.push_back(end);
  return out;
}

}  // namespace reprise::runbook
