#include "cli/usage_error.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "cli/escape.h"

namespace reprise::cli {
namespace {

// The command that the words of the command line lead to, or one on the way there that was given a
// word it does not know.
const CLI::App& where_it_went_wrong(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() || app.remaining_size() > 0 ? app : where_it_went_wrong(*chosen.front());
}

// "reprise queue push"
std::string path_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// Flags of the commands below `app`: what stands before the command may belong after it.
bool belongs_to_a_command(const CLI::App& app, const std::string& flag) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::ranges::any_of(commands, [&](const CLI::App* command) {
    const auto names = flag_names(*command);
    return std::ranges::find(names, flag) != names.end() || belongs_to_a_command(*command, flag);
  });
}

// Takes words of its own; commands below it are an alternative.
bool takes_arguments(const CLI::App& app) {
  return std::ranges::any_of(app.get_options(),
                             [](const CLI::Option* option) { return option->get_positional(); });
}

std::string suggestion(const std::string& typed, const std::vector<std::string>& known) {
  const auto meant = did_you_mean(typed, known);
  return meant ? fmt::format("; did you mean '{}'?", *meant) : std::string();
}

std::string unknown_word(const CLI::App& app, const std::string& word) {
  const std::string shown = escape_text(word);
  if (word.starts_with('-') && word.size() > 1) {
    const std::string flag = word.substr(0, word.find('='));
    if (belongs_to_a_command(app, flag)) {
      return fmt::format("{} goes after the command", shown);
    }
    return fmt::format("unknown flag '{}'{}", shown, suggestion(flag, flag_names(app)));
  }
  const auto commands = command_names(app);
  if (commands.empty() || takes_arguments(app))
    return fmt::format("unexpected argument '{}'", shown);
  return fmt::format("unknown command '{}'{}", shown, suggestion(word, commands));
}

}  // namespace

std::string explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = where_it_went_wrong(app);
  const auto words = command.remaining();
  const auto unknown = std::ranges::find_if(words, [](const auto& word) { return word != "--"; });

  std::string problem;
  if (unknown != words.end()) {
    problem = unknown_word(command, *unknown);
  } else if (!command_names(command).empty() && !takes_arguments(command)) {
    const CLI::App* const parent = command.get_parent();
    return "reprise: no command given\n\n" +
           command.help(parent == nullptr ? "" : path_of(*parent));
  } else {
    problem = escape_text(error.what());
  }
  const char* const end = problem.ends_with('?') || problem.ends_with('.') ? "" : ".";
  return fmt::format("reprise: {}{} See: {} --help\n", problem, end, path_of(command));
}

}  // namespace reprise::cli
