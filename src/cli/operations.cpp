// operation list, show, cancel: retries and purges that the server works off by itself.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Operations";
constexpr auto kRight = Column::Align::right;

struct ListFlags {
  bool running = false;
  bool no_header = false;
};

Cell state_cell(JsonView state) {
  const std::string text = text_of(state);
  if (text == "running") return Cell(text, Style::cyan);
  if (text == "failed") return Cell(text, Style::red);
  if (text == "cancelled") return Cell(text, Style::yellow);
  return Cell(text);
}

int list(CommandContext& context, const ListFlags& flags) {
  client::QueryParameters filter;
  if (flags.running) filter.emplace_back("state", "running");
  const auto reply = context.client().list_operations(filter);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table({{.title = "ID", .align = kRight},
               {.title = "KIND"},
               {.title = "NAMESPACE"},
               {.title = "QUEUE"},
               {.title = "STATE"},
               {.title = "DONE", .align = kRight},
               {.title = "TOTAL", .align = kRight},
               {.title = "SKIPPED", .align = kRight, .may_be_left_out = true},
               {.title = "RATE", .may_be_left_out = true},
               {.title = "STARTED"},
               {.title = "BY"}},
              context.terminal(), !flags.no_header);
  for (const auto& operation : reply->json()["operations"].elements()) {
    const auto cell = [&](const char* field) { return Cell(text_of(operation[field])); };
    table.add({Cell(text_of(operation["id"]), Style::bold), cell("kind"), cell("namespace"),
               cell("queue"), state_cell(operation["state"]), cell("done"), cell("total"),
               cell("skipped"), cell("rate"), cell("started_at"), cell("by")});
  }
  context.print(table.take_text());
  return kExitOk;
}

int show(CommandContext& context, const std::string& id) {
  const auto reply = context.client().show_operation(id);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Record record(context.terminal());
  record.section("Operation " + id);
  for (const auto& [name, value] : reply->json().members()) add_fields(record, name, value);
  context.print(record.text());
  return kExitOk;
}

int cancel(CommandContext& context, const std::string& id) {
  const auto reply = context.client().cancel_operation(id);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("cancelled operation {}; {} done, which stays\n", id,
                            text_of(reply->json()["done"])));
  return kExitOk;
}

void add_list(CLI::App& operation, const Commands& commands) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App& command = add_command(
      operation, {.name = "list",
                  .description = "List retries and purges that run or ran, the newest first",
                  .examples = "  reprise operation list\n  reprise operation list --running",
                  .group = kGroup});
  command.add_flag("--running", flags->running, "Only those that still run");
  add_no_header(command, flags->no_header);
  commands.on_run(
      command, [flags](CommandContext& context) { return list(context, *flags); },
      Scope::whole_server);
}

// A command about one operation.
void add_for_one(CLI::App& operation, const Commands& commands, const CommandInfo& info,
                 int (*run)(CommandContext&, const std::string&)) {
  auto id = std::make_shared<std::string>();
  CLI::App& command = add_command(operation, info);
  command.add_option("N", *id, "The operation's number")
      ->required()
      ->type_name("")
      ->check(count_problem);
  commands.on_run(
      command, [id, run](CommandContext& context) { return run(context, *id); },
      Scope::whole_server);
}

}  // namespace

void add_operation_commands(CLI::App& root, const Commands& commands) {
  CLI::App& operation =
      add_command(root, {.name = "operation",
                         .description = "Watch and cancel retries and purges that the server runs",
                         .examples = "",
                         .group = "Queues and jobs"});
  operation.require_subcommand(1);
  add_list(operation, commands);
  add_for_one(operation, commands,
              {.name = "show",
               .description = "Show one operation: how far it is, and what it selects",
               .examples = "  reprise operation show 7\n"
                           "  reprise operation show 7 --json | jq .done",
               .group = kGroup},
              show);
  add_for_one(operation, commands,
              {.name = "cancel",
               .description = "End an operation that runs; what it has done stays done",
               .examples = "  reprise operation cancel 7",
               .group = kGroup},
              cancel);
}

}  // namespace reprise::cli
