// queue list, show: counts, rates, ages, config.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cli/breaker_record.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/hook_record.h"
#include "cli/key_record.h"
#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Queues";
constexpr auto kRight = Column::Align::right;

struct ListFlags {
  bool all_namespaces = false;
  bool no_header = false;
};

Cell state_cell(JsonView queue) {
  return queue["paused"].is_true() ? Cell("paused", Style::yellow) : Cell("running", Style::green);
}

// A number that deserves a look when it is not zero.
Cell alarm_cell(JsonView count, Style style) {
  const std::string text = text_of(count);
  return Cell(text, text == "0" ? Style::plain : style);
}

std::vector<Column> list_columns(bool with_namespace) {
  std::vector<Column> columns;
  if (with_namespace) columns.push_back({.title = "NAMESPACE"});
  columns.push_back({.title = "QUEUE"});
  columns.push_back({.title = "STATE"});
  for (const char* title :
       {"PENDING", "ACTIVE", "SCHEDULED", "FAILED", "DEAD", "OLDEST", "PUSH/S", "DONE/S"}) {
    columns.push_back({.title = title, .align = kRight});
  }
  return columns;
}

std::vector<Cell> list_row(JsonView queue, bool with_namespace) {
  const auto stats = queue["stats"];
  std::vector<Cell> row;
  if (with_namespace) row.emplace_back(text_of(queue["namespace"]));
  row.emplace_back(text_of(queue["name"]), Style::bold);
  row.push_back(state_cell(queue));
  row.emplace_back(text_of(stats["pending"]));
  row.emplace_back(text_of(stats["active"]));
  row.emplace_back(text_of(stats["scheduled"]));
  row.push_back(alarm_cell(stats["failed"], Style::yellow));
  row.push_back(alarm_cell(stats["dead"], Style::red));
  row.emplace_back(seconds_text(stats["oldest_pending_age"]));
  row.emplace_back(rate_text(stats["rates"]["push"]));
  row.emplace_back(rate_text(stats["rates"]["completion"]));
  return row;
}

// What it holds is counted elsewhere; here, only what is in hand.
std::vector<Cell> external_row(JsonView queue, bool with_namespace) {
  std::vector<Cell> row;
  if (with_namespace) row.emplace_back(text_of(queue["namespace"]));
  row.emplace_back(text_of(queue["name"]), Style::bold);
  row.emplace_back("external");
  row.emplace_back("-");
  row.emplace_back(text_of(queue["in_hand"]));
  for (int i = 0; i < 6; ++i) row.emplace_back("-");
  return row;
}

int list(CommandContext& context, const ListFlags& flags) {
  const auto reply = context.client().list_queues(flags.all_namespaces);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table(list_columns(flags.all_namespaces), context.terminal(), !flags.no_header);
  for (const auto& queue : reply->json()["queues"].elements()) {
    table.add(list_row(queue, flags.all_namespaces));
  }
  for (const auto& queue : reply->json()["external"].elements()) {
    table.add(external_row(queue, flags.all_namespaces));
  }
  context.print(table.take_text());
  return kExitOk;
}

// "orders (namespace default), running, created 3d 4h ago"
std::string headline(JsonView queue) {
  return fmt::format("{} (namespace {}), {}, created {} ago", text_of(queue["name"]),
                     text_of(queue["namespace"]), queue["paused"].is_true() ? "paused" : "running",
                     age_text(queue["created_at"], wall_now()));
}

void show_counts(Record& record, JsonView stats) {
  record.section("Jobs");
  for (const char* status : {"pending", "active", "scheduled", "failed", "dead", "completed"}) {
    record.field(fmt::format("stats.{}", status), status, Cell(text_of(stats[status])));
  }
  record.field("stats.completed_kept", "completed, kept", Cell(text_of(stats["completed_kept"])));
  record.field("stats.bytes", "size", Cell(bytes_text(stats["bytes"])));
  record.field("stats.oldest_pending_age", "oldest pending",
               Cell(seconds_text(stats["oldest_pending_age"])));
  record.field("stats.waiting_claims", "waiting claims", Cell(text_of(stats["waiting_claims"])));
}

// "1: 12, 3: 4": how many jobs have failed how often, those that there are.
std::string failures_text(JsonView retries_by_failures) {
  std::string text;
  for (const auto& [failures, jobs] : retries_by_failures.members()) {
    if (jobs.unsigned_integer().value_or(0) == 0) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", failures, text_of(jobs));
  }
  return text;
}

void show_lanes(Record& record, JsonView lanes, const Terminal& terminal) {
  record.section("Lanes");
  for (const auto& [name, value] : lanes.members()) {
    const std::string path = "stats.lanes." + name;
    if (value.is_object() && terminal.out_is_tty) {
      record.field(path, "retries by failures", Cell(failures_text(value)));
    } else {
      add_fields(record, path, value, std::string_view("stats.lanes.").size());
    }
  }
}

void show_rates_and_totals(Record& record, JsonView stats) {
  record.section("Per second, over the last minute");
  for (const auto& [name, rate] : stats["rates"].members()) {
    record.field("stats.rates." + name, name, Cell(rate_text(rate)));
  }
  record.section("Since the queue was created");
  add_fields(record, "stats.totals", stats["totals"], std::string_view("stats.totals.").size());
}

std::string joined(JsonView names) {
  std::string all;
  for (const JsonView name : names.elements()) {
    if (!all.empty()) all += ", ";
    all += text_of(name);
  }
  return all;
}

void show_config(Record& record, JsonView queue, const Terminal& terminal) {
  record.section("Config");
  for (const auto& [name, value] : queue["config"].members()) {
    const std::string path = "config." + name;
    if (name == "max_bytes") {
      record.field(path, "max bytes", Cell(bytes_text(value)));
    } else if (name == "hook_memory_bytes") {
      record.field(path, "hook memory", Cell(bytes_text(value)));
    } else if (name == hook_name(HookKind::on_enqueue)) {
      record.field(path, name, hook_source_cell(queue, HookKind::on_enqueue, terminal));
    } else if (name == hook_name(HookKind::on_failure)) {
      record.field(path, name, hook_source_cell(queue, HookKind::on_failure, terminal));
    } else if (name == "vars") {
      record.field(path, name, Cell(joined(value)));
    } else if (name == "defaults") {
      record.field(path, name, Cell(value.is_null() ? std::string() : std::string(value.raw())));
    } else {
      add_fields(record, path, value, std::string_view("config.").size());
    }
  }
}

// Jobs of an external queue are elsewhere: there is less to tell.
std::string external_text(JsonView queue, const Terminal& terminal) {
  Record record(terminal);
  record.section(fmt::format("{} (namespace {}), external", text_of(queue["name"]),
                             text_of(queue["namespace"])));
  for (const auto& [name, value] : queue.members()) add_fields(record, name, value);
  return record.text();
}

int show(CommandContext& context, const std::string& name) {
  const auto reply = context.client().show_queue(name);
  if (const int code = context.report(reply, name); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  const auto queue = reply->json();
  if (queue["type"].string_or("") == "external") {
    context.print(external_text(queue, context.terminal()));
    return kExitOk;
  }
  Record record(context.terminal());
  if (context.terminal().out_is_tty) {
    record.section(headline(queue));
  } else {
    for (const char* field : {"name", "namespace", "paused", "created_at"}) {
      record.field(field, "", Cell(text_of(queue[field])));
    }
  }
  show_counts(record, queue["stats"]);
  show_lanes(record, queue["stats"]["lanes"], context.terminal());
  add_keys(record, queue["stats"]["keys"], context.terminal());
  show_rates_and_totals(record, queue["stats"]);
  show_config(record, queue, context.terminal());
  add_breaker(record, queue["breaker"], context.terminal(), wall_now());
  add_hooks(record, queue, context.terminal(), wall_now());
  context.print(record.text());
  return kExitOk;
}

}  // namespace

void add_queue_stats_commands(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App& list_command =
      add_command(queue, {.name = "list",
                          .description = "List queues with their counts and rates",
                          .examples = "  reprise queue list\n"
                                      "  reprise queue list --all-namespaces\n"
                                      "  reprise queue list --no-header | cut -f1",
                          .group = kGroup});
  list_command.add_flag("-A,--all-namespaces", flags->all_namespaces, "Queues of every namespace");
  add_no_header(list_command, flags->no_header);
  commands.on_run(list_command, [flags](CommandContext& context) { return list(context, *flags); });

  auto name = std::make_shared<std::string>();
  CLI::App& show_command = add_command(
      queue, {.name = "show",
              .description =
                  "Show one queue: counts by status, lanes, keys, rates, config, breaker, hooks",
              .examples = "  reprise queue show orders\n"
                          "  reprise queue show orders --json | jq .stats.pending",
              .group = kGroup});
  add_queue_argument(show_command, *name);
  commands.on_run(show_command, [name](CommandContext& context) { return show(context, *name); });
}

}  // namespace reprise::cli
