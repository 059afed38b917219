#include "cli/help_formatter.h"

namespace reprise::cli {

HelpFormatter::HelpFormatter() {
  column_width(34);
  label("SUBCOMMAND", "COMMAND");
  label("SUBCOMMANDS", "COMMANDS");
  label("Subcommands", "Commands");
  label("Positionals", "Arguments");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text;
  if (option->get_type_size() != 0 && !option->get_type_name().empty()) {
    text += " " + option->get_type_name();
  }
  if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
  if (!option->get_envname().empty()) text += " ($" + option->get_envname() + ")";
  return text;
}

}  // namespace reprise::cli
