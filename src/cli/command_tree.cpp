#include "cli/command_tree.h"

#include <CLI/CLI.hpp>

namespace reprise::cli {
namespace {

void add_option(CommandTree& tree, const CLI::Option& option) {
  if (option.get_positional()) {
    tree.arguments.push_back({.name = option.get_name(true),
                              .description = option.get_description(),
                              .required = option.get_required(),
                              .repeated = option.get_items_expected_max() > 1});
    return;
  }
  if (option.get_group().empty()) return;
  CommandFlag flag{.names = {}, .value = {}, .description = option.get_description()};
  for (const auto& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) flag.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) {
    flag.value = option.get_type_name().empty() ? "VALUE" : option.get_type_name();
  }
  tree.flags.push_back(std::move(flag));
}

CommandTree tree_below(const CLI::App& app, const std::string& parent_path) {
  CommandTree tree;
  tree.name = app.get_name();
  tree.path = parent_path.empty() ? tree.name : parent_path + " " + tree.name;
  tree.description = app.get_description();
  tree.footer = app.get_footer();
  for (const auto* option : app.get_options()) add_option(tree, *option);
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) tree.commands.push_back(tree_below(*command, tree.path));
  }
  return tree;
}

}  // namespace

CommandTree command_tree(const CLI::App& app) { return tree_below(app, ""); }

}  // namespace reprise::cli
