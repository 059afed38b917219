// project add, list, remove: projects that the server knows.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/namespace_choice.h"
#include "cli/project_record.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Projects";

int add(CommandContext& context, const std::string& directory) {
  const auto place = choose_namespace(context.flags().ns, directory);
  if (!place) throw CLI::ValidationError("DIR", place.error().detail);
  if (place->root.empty()) {
    throw CLI::ValidationError(
        "DIR", "neither " + directory + " nor a directory above it holds .reprise/");
  }
  const auto reply = context.client().add_project(place->ns, place->root);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  const auto project = reply->json();
  context.print(fmt::format("added project {} ({})\n", escape_text(text_of(project["name"])),
                            escape_text(text_of(project["root"]))));
  std::fflush(stdout);
  for (const auto& warning : warning_texts(project)) context.note(escape_text(warning));
  return kExitOk;
}

int list(CommandContext& context, bool no_header) {
  const auto reply = context.client().list_projects();
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table(project_columns(), context.terminal(), !no_header);
  for (const auto& project : reply->json()["projects"].elements()) table.add(project_row(project));
  context.print(table.take_text());
  return kExitOk;
}

int remove(CommandContext& context, const std::string& name) {
  const auto reply = context.client().remove_project(name);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("removed project {}\n", escape_text(name)));
  return kExitOk;
}

void add_add(CLI::App& project, const Commands& commands) {
  auto directory = std::make_shared<std::string>();
  CLI::App& command =
      add_command(project, {.name = "add",
                            .description = "Have the server load a project, and remember it",
                            .examples = "  reprise project add\n"
                                        "  reprise project add /srv/shop\n"
                                        "  reprise project add /srv/shop-2 --project shop-2",
                            .group = kGroup});
  command.add_option("DIR", *directory, "In the project [the current directory]")->type_name("");
  commands.on_run(
      command,
      [directory](CommandContext& context) {
        return add(context, directory->empty() ? current_directory() : *directory);
      },
      Scope::whole_server);
}

void add_list(CLI::App& project, const Commands& commands) {
  auto no_header = std::make_shared<bool>(false);
  CLI::App& command =
      add_command(project, {.name = "list",
                            .description = "List the projects that the server knows",
                            .examples = "  reprise project list\n"
                                        "  reprise project list --no-header | cut -f1,2",
                            .group = kGroup});
  add_no_header(command, *no_header);
  commands.on_run(
      command, [no_header](CommandContext& context) { return list(context, *no_header); },
      Scope::whole_server);
}

void add_remove(CLI::App& project, const Commands& commands) {
  auto name = std::make_shared<std::string>();
  CLI::App& command = add_command(
      project, {.name = "remove",
                .description = "Stop its workers, give their jobs back and forget the project; "
                               "queues and jobs stay",
                .examples = "  reprise project remove shop",
                .group = kGroup});
  command.add_option("NAME", *name, "The project's name")->required()->type_name("");
  commands.on_run(
      command, [name](CommandContext& context) { return remove(context, *name); },
      Scope::whole_server);
}

}  // namespace

void add_project_commands(CLI::App& root, const Commands& commands) {
  CLI::App& project =
      add_command(root, {.name = "project",
                         .description = "Projects, whose runbooks the server works by",
                         .examples = "",
                         .group = "Runbooks"});
  project.require_subcommand(1);
  add_add(project, commands);
  add_list(project, commands);
  add_remove(project, commands);
}

}  // namespace reprise::cli
