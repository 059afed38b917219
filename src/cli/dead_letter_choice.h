// Which dead letters of the spool a person means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/output.h"
#include "spool/dead_letters.h"

namespace reprise::cli {

// The one that `given` names: its id or the name of its file, whole or the first characters, at
// least 4, in any case. Null: there is none. Errc::ambiguous_id: it fits several;
// Errc::invalid_field: too short.
Result<const spool::DeadLetter*> find_dead_letter(std::span<const spool::DeadLetter> letters,
                                                  std::string_view given);

// Shows the first of them, numbered, to a person on a terminal and asks which to `verb`. No value:
// nothing was chosen.
std::optional<std::vector<const spool::DeadLetter*>> choose_dead_letters(
    const Output& output, std::span<const spool::DeadLetter> letters, std::string_view verb);

}  // namespace reprise::cli
