// Escaping: text from outside never reaches a terminal or a pipe raw.
// A payload or an error may hold escape sequences that move the cursor, recolour or retitle a
// terminal, or a line break that forges a row. Results here hold no control characters (C0, DEL,
// C1), no line separators, no bidirectional overrides and only valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::cli {

// Control characters as \n, \t, \r or \u001b; bytes that are not UTF-8 as \xff.
std::string escape_text(std::string_view text);

// The same for the output of a program: its line breaks and tabs stay.
std::string escape_output(std::string_view text);

// The same for text that is JSON, which stays JSON with the same meaning: white space between
// tokens becomes spaces, and in strings \u001b means what the character did.
std::string escape_json(std::string_view json);

// How many columns valid UTF-8 takes on a terminal.
std::size_t display_width(std::string_view text);
// Cut to `width` columns, the last of them "…" when something was cut.
std::string cut_to_width(std::string_view text, std::size_t width);

}  // namespace reprise::cli
