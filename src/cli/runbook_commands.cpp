// runbook check, show: what a project declares, read from its files without a server.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/runbook_report.h"
#include "cli/terminal.h"
#include "model/limits.h"
#include "runbook/load.h"

namespace reprise::cli {
namespace {

using runbook::LoadResult;

constexpr char kGroup[] = "Runbooks";

struct Flags {
  std::string directory = ".";
  std::string project;  // its name; empty: what it calls itself
  bool json = false;
};

void print(std::string_view text) { fmt::print("{}", text); }

int no_project(const Flags& flags) {
  fmt::print(stderr,
             "reprise: no project: neither '{}' nor a directory above it holds {}/; make one, with "
             "a runbook in it\n",
             escape_text(flags.directory), runbook::kRunbookDirectory);
  return kExitUsage;
}

int check(const Flags& flags) {
  const auto root = runbook::find_project(flags.directory);
  if (!root) return no_project(flags);
  const LoadResult loaded = runbook::load_runbook(*root, flags.project);
  if (flags.json) {
    print(check_json(loaded, *root));
  } else {
    print(findings_text(loaded));
    if (loaded.runbook) print(files_text(*loaded.runbook));
  }
  return has_errors(loaded) ? kExitRefused : kExitOk;
}

int show(const Flags& flags) {
  const auto root = runbook::find_project(flags.directory);
  if (!root) return no_project(flags);
  const LoadResult loaded = runbook::load_runbook(*root, flags.project);
  if (has_errors(loaded) && flags.json) {
    print(check_json(loaded, *root));
  } else {
    fmt::print(stderr, "{}", findings_text(loaded));
  }
  if (!loaded.runbook) return kExitRefused;
  print(flags.json ? show_json(*loaded.runbook) : show_text(*loaded.runbook, Terminal::detect()));
  return kExitOk;
}

std::string name_problem(const std::string& name) {
  const Status fine = check_name("project", name);
  return fine ? std::string() : fine.error().detail;
}

void add_one(CLI::App& runbook, const Commands& commands, const CommandInfo& info,
             int (*run)(const Flags&)) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = add_command(runbook, info);
  command.add_option("DIR", flags->directory, "A directory in the project [the current one]")
      ->type_name("");
  command
      .add_option("--project", flags->project,
                  "The project's name, instead of the one that it gives itself")
      ->envname("REPRISE_PROJECT")
      ->type_name("NAME")
      ->check(name_problem);
  command.add_flag("--json", flags->json, "Print JSON");
  commands.on_local_run(command, [flags, run] { return run(*flags); });
}

}  // namespace

void add_runbook_commands(CLI::App& root, const Commands& commands) {
  CLI::App& runbook =
      add_command(root, {.name = "runbook",
                         .description = "Check and show what a project declares in .reprise/",
                         .examples = "",
                         .group = kGroup});
  runbook.require_subcommand(1);
  add_one(runbook, commands,
          {.name = "check",
           .description = "Tell all that is wrong with a runbook; needs no server",
           .examples = "  reprise runbook check\n"
                       "  reprise runbook check ~/shop\n"
                       "  reprise runbook check --json | jq '.findings[].message'",
           .group = kGroup},
          check);
  add_one(runbook, commands,
          {.name = "show",
           .description = "Print queues, steps and workers as they will be used; needs no server",
           .examples = "  reprise runbook show\n"
                       "  reprise runbook show --json | jq -r '.pipelines[].steps[].script'",
           .group = kGroup},
          show);
}

}  // namespace reprise::cli
