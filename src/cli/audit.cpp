// audit: who retried, purged, dropped and deleted what.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr auto kRight = Column::Align::right;

struct AuditFlags {
  std::optional<std::string> queue;
  std::optional<std::string> action;
  std::optional<std::uint64_t> limit;
  std::optional<std::string> before;
  bool no_header = false;
};

client::QueryParameters parameters_of(const AuditFlags& flags, const std::string& ns) {
  client::QueryParameters parameters;
  if (!ns.empty()) parameters.emplace_back("namespace", ns);
  if (flags.queue) parameters.emplace_back("queue", *flags.queue);
  if (flags.action) parameters.emplace_back("action", *flags.action);
  if (flags.limit) parameters.emplace_back("limit", std::to_string(*flags.limit));
  if (flags.before) parameters.emplace_back("before", *flags.before);
  return parameters;
}

// The ids, or the filter: a record has one of them.
Cell what_cell(const CommandContext& context, JsonView record) {
  std::string ids;
  for (const auto& id : record["ids"].elements()) {
    ids += (ids.empty() ? "" : " ") + context.shown_id(text_of(id));
  }
  if (!ids.empty()) return Cell(ids);
  const auto filter = record["filter"];
  return filter.is_null() ? Cell("") : Cell::json(filter.raw());
}

int audit(CommandContext& context, const AuditFlags& flags) {
  const auto reply = context.client().audit(parameters_of(flags, context.flags().ns));
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table({{.title = "NUMBER", .align = kRight},
               {.title = "AT"},
               {.title = "BY"},
               {.title = "ACTION"},
               {.title = "NAMESPACE"},
               {.title = "QUEUE"},
               {.title = "WHAT", .may_be_cut = true},
               {.title = "DONE", .align = kRight},
               {.title = "SKIPPED", .align = kRight, .may_be_left_out = true},
               {.title = "NOT FOUND", .align = kRight, .may_be_left_out = true},
               {.title = "OPERATION", .align = kRight, .may_be_left_out = true}},
              context.terminal(), !flags.no_header);
  for (const auto& record : reply->json()["records"].elements()) {
    const auto cell = [&](const char* field) { return Cell(text_of(record[field])); };
    table.add({cell("number"), cell("at"), cell("by"), Cell(text_of(record["action"]), Style::bold),
               cell("namespace"), cell("queue"), what_cell(context, record), cell("done"),
               cell("skipped"), cell("not_found"), cell("operation")});
  }
  context.print(table.take_text());
  if (const auto before = reply->json()["before"]; !before.is_null()) {
    context.note("more: --before " + text_of(before));
  }
  return kExitOk;
}

}  // namespace

void add_audit_command(CLI::App& root, const Commands& commands) {
  auto flags = std::make_shared<AuditFlags>();
  CLI::App& command = add_command(
      root, {.name = "audit",
             .description = "Who retried, purged, dropped and deleted what, the newest first",
             .examples = "  reprise audit\n"
                         "  reprise audit --queue orders --action purge\n"
                         "  reprise audit -n billing --limit 200 --json",
             .group = "Server"});
  command.add_option("--queue", flags->queue, "Only of this queue")->type_name("NAME");
  command.add_option("--action", flags->action, "retry, purge, drop, delete or cancel")
      ->type_name("ACTION")
      ->check(CLI::IsMember({"retry", "purge", "drop", "delete", "cancel"}));
  command.add_option("--limit", flags->limit, "At most this many [50]")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command.add_option("--before", flags->before, "Only records older than this number")
      ->type_name("N")
      ->check(count_problem);
  add_no_header(command, flags->no_header);
  commands.on_run(
      command, [flags](CommandContext& context) { return audit(context, *flags); },
      Scope::whole_server);
}

}  // namespace reprise::cli
