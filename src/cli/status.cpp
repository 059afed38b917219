// status: the server at a glance.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

void show_server(Record& record, JsonView status, const CommandContext& context) {
  const auto plain = [&](const char* path, const char* label) {
    record.field(path, label, Cell(text_of(status[path])));
  };
  record.section("Server");
  if (context.terminal().out_is_tty) record.field("", "url", Cell(context.flags().server));
  plain("version", "version");
  plain("started_at", "started");
  record.field("uptime", "uptime", Cell(seconds_text(status["uptime"])));
  plain("durability", "durability");
  plain("storage", "storage");
  record.field("data_bytes", "data", Cell(bytes_text(status["data_bytes"])));
  record.field("disk_free_bytes", "disk free", Cell(bytes_text(status["disk_free_bytes"])));
  const bool low = status["disk_low"].is_true();
  record.field("disk_low", "disk low",
               Cell(text_of(status["disk_low"]), low ? Style::red : Style::plain));
  plain("connections", "connections");
  plain("waiting_claims", "waiting claims");
  plain("queues", "queues");
}

// For people one line an operation; piped, every field of each.
void show_operations(Record& record, JsonView operations, const Terminal& terminal) {
  record.section("Running operations");
  const auto running = operations.elements();
  if (!terminal.out_is_tty) {
    // An empty list has no fields.
    if (!running.empty()) add_fields(record, "operations", operations);
    return;
  }
  for (const auto& operation : running) {
    const std::string total = text_of(operation["total"]);
    record.field(
        "", "operation " + text_of(operation["id"]),
        Cell(fmt::format("{} of queue {} (namespace {}), {}{} done", text_of(operation["kind"]),
                         text_of(operation["queue"]), text_of(operation["namespace"]),
                         text_of(operation["done"]), total.empty() ? total : " of " + total)));
  }
  if (running.empty()) record.field("", "none", Cell(""));
}

int status(CommandContext& context) {
  const auto reply = context.client().status();
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Record record(context.terminal());
  show_server(record, reply->json(), context);
  record.section("Jobs");
  for (const auto& [name, count] : reply->json()["jobs"].members()) {
    record.field("jobs." + name, name, Cell(text_of(count)));
  }
  show_operations(record, reply->json()["operations"], context.terminal());
  record.section("Webhooks");
  record.field("webhooks.pending", "to be sent",
               Cell(text_of(reply->json()["webhooks"]["pending"])));
  if (const auto workers = reply->json()["workers"]; workers.is_object()) {
    record.section("Workers");
    record.field("workers.projects", "projects", Cell(text_of(workers["projects"])));
    record.field("workers.running", "running", Cell(text_of(workers["running"])));
    record.field("workers.active", "jobs in work", Cell(text_of(workers["active"])));
  }
  context.print(record.text());
  return kExitOk;
}

}  // namespace

void add_status_command(CLI::App& root, const Commands& commands) {
  CLI::App& command =
      add_command(root, {.name = "status",
                         .description = "Show the server: version, uptime, disk, jobs by status",
                         .examples = "  reprise status\n"
                                     "  reprise status --server http://queue.example:7333 --json",
                         .group = "Server"});
  commands.on_run(command, status, Scope::whole_server);
}

}  // namespace reprise::cli
