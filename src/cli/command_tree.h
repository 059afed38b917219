// CommandTree: every command with its flags as plain data, read from the CLI11 app itself.
// Completion and the man page are made from it, so they cannot forget a flag.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::cli {

struct CommandFlag {
  std::vector<std::string> names;  // "-n", "--namespace"
  std::string value;               // "NAME"; empty: takes none
  std::string description;
};

struct CommandArgument {
  std::string name;  // "QUEUE"
  std::string description;
  bool required = false;
  bool repeated = false;
};

struct CommandTree {
  std::string name;
  std::string path;  // "reprise queue push"
  std::string description;
  std::string footer;
  std::vector<CommandFlag> flags;
  std::vector<CommandArgument> arguments;
  std::vector<CommandTree> commands;  // hidden ones left out
};

CommandTree command_tree(const CLI::App& app);

}  // namespace reprise::cli
