#include "cli/manpage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "reprise_version.h"

namespace reprise::cli {
namespace {

void append_flag(std::string& out, const CommandFlag& flag) {
  std::string names;
  for (const auto& name : flag.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escape_roff(name));
  }
  if (!flag.value.empty()) names += fmt::format(" \\fI{}\\fR", escape_roff(flag.value));
  out += fmt::format(".TP\n{}\n{}\n", names, escape_roff(flag.description));
}

// It does nothing by itself.
bool is_group(const CommandTree& command) {
  return !command.commands.empty() && command.arguments.empty();
}

std::string synopsis(const CommandTree& command) {
  std::string out = fmt::format("\\fB{}\\fR", escape_roff(command.path));
  if (is_group(command)) out += " \\fICOMMAND\\fR";
  for (const auto& argument : command.arguments) {
    const std::string name = escape_roff(argument.name) + (argument.repeated ? "..." : "");
    out +=
        argument.required ? fmt::format(" \\fI{}\\fR", name) : fmt::format(" [\\fI{}\\fR]", name);
  }
  return out + " [\\fIoptions\\fR]";
}

// Examples and other prose that keeps its line breaks.
void append_preformatted(std::string& out, const std::string& text) {
  if (text.empty()) return;
  out += ".PP\n.nf\n";
  for (const auto& line : CLI::detail::split(text, '\n')) out += escape_roff(line) + "\n";
  out += ".fi\n";
}

void append_command(std::string& out, const CommandTree& command) {
  if (!is_group(command)) {
    out += fmt::format(".SS {}\n{}\n.PP\n{}\n", escape_roff(command.path), synopsis(command),
                       escape_roff(command.description));
    for (const auto& argument : command.arguments) {
      out += fmt::format(".TP\n\\fI{}\\fR\n{}\n", escape_roff(argument.name),
                         escape_roff(argument.description));
    }
    for (const auto& flag : command.flags) append_flag(out, flag);
    append_preformatted(out, command.footer);
  }
  for (const auto& below : command.commands) append_command(out, below);
}

}  // namespace

std::string escape_roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string man_page(const CommandTree& root, std::string_view version) {
  std::string out = fmt::format(".TH REPRISE 1 \"\" \"reprise {}\" \"User Commands\"\n", version);
  out += ".SH NAME\nreprise \\- a durable work queue\n";
  out += fmt::format(".SH SYNOPSIS\n{}\n", synopsis(root));
  out += fmt::format(".SH DESCRIPTION\n{}\n", escape_roff(root.description));
  append_preformatted(out, root.footer);
  out += ".SH COMMANDS\n";
  for (const auto& command : root.commands) append_command(out, command);
  return out;
}

void add_manpage_command(CLI::App& root, const Commands& commands) {
  CLI::App& command = add_command(root, {.name = "manpage",
                                         .description = "Print the man page",
                                         .examples = "  reprise manpage | man -l -",
                                         .group = "Shell"});
  commands.on_local_run(command, [&root] {
    fmt::print("{}", man_page(command_tree(root), kVersion));
    return kExitOk;
  });
}

}  // namespace reprise::cli
