#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

// Words that may follow a command: its commands, or its flags.
std::string words_after(const CommandTree& command) {
  std::string words;
  for (const auto& below : command.commands) words += below.name + " ";
  for (const auto& flag : command.flags) {
    for (const auto& name : flag.names) words += name + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

// "--server|--namespace": after these stands a value, which is no command.
std::string flags_with_value(const CommandTree& command) {
  std::string names;
  for (const auto& flag : command.flags) {
    if (flag.value.empty()) continue;
    for (const auto& name : flag.names) names += (names.empty() ? "" : "|") + name;
  }
  return names;
}

bool takes_queue(const CommandTree& command) {
  return !command.arguments.empty() && command.arguments.front().name == "QUEUE";
}

void append_words_case(std::string& out, const CommandTree& command) {
  out += fmt::format("    '{}') choices='{}'; queue={} ;;\n", command.path, words_after(command),
                     takes_queue(command) ? 1 : 0);
  for (const auto& below : command.commands) append_words_case(out, below);
}

void append_values_case(std::string& out, const CommandTree& command) {
  if (const auto names = flags_with_value(command); !names.empty()) {
    std::string patterns;
    for (const auto& name : CLI::detail::split(names, '|')) {
      patterns += (patterns.empty() ? "'" : "|'") + command.path + " " + name + "'";
    }
    out += fmt::format("    {}) return 0 ;;\n", patterns);
  }
  for (const auto& below : command.commands) append_values_case(out, below);
}

// The flags whose value is a file or directory: the shell completes those by itself.
void append_files_case(std::string& out, const CommandTree& command) {
  for (const auto& flag : command.flags) {
    if (flag.value != "FILE" && flag.value != "DIR") continue;
    out += fmt::format("    '{} {}') return 0 ;;\n", command.path, flag.names.back());
  }
  for (const auto& below : command.commands) append_files_case(out, below);
}

void append_commands_case(std::string& out, const CommandTree& command) {
  for (const auto& below : command.commands) {
    out += fmt::format("    '{}') return 0 ;;\n", below.path);
    append_commands_case(out, below);
  }
}

constexpr char kBashEnd[] = R"(
_reprise() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command=reprise choices='' queue=0 arguments=0 i word
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if _reprise_takes_value "$command ${COMP_WORDS[i-1]}"; then continue
    elif _reprise_is_command "$command $word"; then command+=" $word"
    elif [[ $word != -* ]]; then ((++arguments)); fi
  done
  COMPREPLY=()
  if _reprise_takes_value "$command $previous"; then
    _reprise_takes_file "$command $previous" && compopt -o default 2> /dev/null
    return
  fi
  _reprise_choices "$command"
  if [[ $queue == 1 && $arguments == 0 && $current != -* ]]; then
    choices=$(reprise queue list --no-header 2> /dev/null | cut -f1)
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
}
complete -F _reprise reprise
)";

// The last lines work for a file in fpath and for `source <(reprise completion zsh)` alike.
constexpr char kZshEnd[] = R"(
_reprise() {
  local command=reprise choices='' queue=0 arguments=0 i word
  for ((i = 2; i < CURRENT; i++)); do
    word=${words[i]}
    if _reprise_takes_value "$command ${words[i-1]}"; then continue
    elif _reprise_is_command "$command $word"; then command+=" $word"
    elif [[ $word != -* ]]; then ((++arguments)); fi
  done
  if _reprise_takes_value "$command ${words[CURRENT-1]}"; then
    _reprise_takes_file "$command ${words[CURRENT-1]}" && _files
    return
  fi
  _reprise_choices "$command"
  if [[ $queue == 1 && $arguments == 0 && ${words[CURRENT]} != -* ]]; then
    choices=$(reprise queue list --no-header 2> /dev/null | cut -f1)
  fi
  compadd -- ${=choices}
}
if [[ ${funcstack[1]} == _reprise ]]; then
  _reprise "$@"
else
  compdef _reprise reprise
fi
)";

// Which words may follow, which are commands, which flags take a value or a file: the same in both
// shells.
std::string shell_functions(const CommandTree& root) {
  std::string out = "_reprise_choices() {\n  case $1 in\n";
  append_words_case(out, root);
  out += "  esac\n}\n\n_reprise_is_command() {\n  case $1 in\n";
  append_commands_case(out, root);
  out += "  esac\n  return 1\n}\n\n_reprise_takes_value() {\n  case $1 in\n";
  append_values_case(out, root);
  out += "  esac\n  return 1\n}\n\n_reprise_takes_file() {\n  case $1 in\n";
  append_files_case(out, root);
  out += "  esac\n  return 1\n}\n";
  return out;
}

}  // namespace

std::string bash_completion(const CommandTree& root) {
  return "# bash completion for reprise; made by: reprise completion bash\n\n" +
         shell_functions(root) + kBashEnd;
}

std::string zsh_completion(const CommandTree& root) {
  return "#compdef reprise\n# zsh completion for reprise; made by: reprise completion zsh\n\n" +
         shell_functions(root) + kZshEnd;
}

void add_completion_command(CLI::App& root, const Commands& commands) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command =
      add_command(root, {.name = "completion",
                         .description = "Print a completion script for a shell",
                         .examples = "  reprise completion bash > /etc/bash_completion.d/reprise\n"
                                     "  source <(reprise completion bash)",
                         .group = "Shell"});
  command.add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh"}));
  commands.on_local_run(command, [shell, &root] {
    const auto tree = command_tree(root);
    fmt::print("{}", *shell == "bash" ? bash_completion(tree) : zsh_completion(tree));
    return kExitOk;
  });
}

}  // namespace reprise::cli
