#include "cli/commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "cli/escape.h"
#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

constexpr char kCommonGroup[] = "Common options";

void add_common_flags(CLI::App& command, CommonFlags& flags) {
  command.add_option("--server", flags.server, "The server's address")
      ->envname("REPRISE_URL")
      ->type_name("URL")
      ->capture_default_str()
      ->group(kCommonGroup);
  auto* const ns = command
                       .add_option("-n,--namespace", flags.ns,
                                   "The namespace of the queue [the project's, else \"default\"]")
                       ->type_name("NAME")
                       ->group(kCommonGroup);
  // Not by CLI11's means: a variable that is always set must not be at odds with --namespace.
  command
      .add_option("--project", flags.project,
                  "The same by the project's name [the one that this directory is in] "
                  "($REPRISE_PROJECT)")
      ->type_name("NAME")
      ->excludes(ns)
      ->group(kCommonGroup);
  command
      .add_option("--token-file", flags.token_file,
                  "A file with the server's token; REPRISE_TOKEN may hold the token itself")
      ->type_name("FILE")
      ->group(kCommonGroup);
  command.add_flag("--json", flags.json, "Print the API's reply as it is")->group(kCommonGroup);
  // Anew, so that it stands with the others, after the command's own flags.
  command.set_help_flag("-h,--help", "Show this help and exit")->group(kCommonGroup);
}

int run_with_context(const CommonFlags& flags, Scope scope, const Commands::Run& run) {
  auto context = CommandContext::make(flags, scope);
  if (!context) {
    fmt::print(stderr, "reprise: {}\n", escape_text(context.error().detail));
    return kExitUsage;
  }
  return run(*context);
}

}  // namespace

CLI::App& add_command(CLI::App& parent, const CommandInfo& info) {
  CLI::App& command = *parent.add_subcommand(info.name, info.description);
  command.group(info.group);
  if (!info.examples.empty()) command.footer("Examples:\n" + info.examples);
  return command;
}

void Commands::on_run(CLI::App& command, Run run, Scope scope) const {
  auto flags = std::make_shared<CommonFlags>();
  add_common_flags(command, *flags);
  command.callback([flags, scope, run = std::move(run), &command, &exit_code = exit_code_] {
    if (!command.get_subcommands().empty()) return;  // one of them has run
    exit_code = run_with_context(*flags, scope, run);
  });
}

void Commands::on_local_run(CLI::App& command, std::function<int()> run) const {
  command.callback([run = std::move(run), &exit_code = exit_code_] { exit_code = run(); });
}

}  // namespace reprise::cli
