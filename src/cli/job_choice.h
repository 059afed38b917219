// Choosing dead jobs from a numbered list, for a person on a terminal who gave no ids.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command_context.h"

namespace reprise::cli {

// What was answered: "1 3-5", "all", or nothing.
struct Choice {
  bool all = false;
  std::vector<std::size_t> numbers;  // from 1, ascending, each once

  bool nothing() const { return !all && numbers.empty(); }
};

// Numbers and ranges between 1 and `count`, separated by spaces or commas. The error says which
// part is none.
Result<Choice> parse_choice(std::string_view answer, std::size_t count);

// Questions go to stderr, so the list does too, and it is always for people.
Terminal for_questions(Terminal terminal);

// Asks which of `count` numbered things, shown already, to `verb` ("retry"), until an answer makes
// sense. No value: nothing was chosen.
std::optional<Choice> ask_for_choice(const Output& output, std::string_view verb,
                                     std::size_t count);

struct ChosenJobs {
  bool all = false;  // all dead jobs, also those that were not shown
  std::vector<std::string> ids;
};

// Shows the latest dead jobs of the queue and asks until an answer makes sense. `verb` is what will
// be done to them ("retry"). No value: there is nothing to do; `exit_code` says how that ends.
std::optional<ChosenJobs> choose_dead_jobs(CommandContext& context, const std::string& queue,
                                           std::string_view verb, int& exit_code);

}  // namespace reprise::cli
