// queue inspect, errors: what died, and of what.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/job_listing.h"
#include "cli/job_selection.h"
#include "cli/json_layout.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Failures";
constexpr auto kRight = Column::Align::right;

struct InspectFlags {
  std::string queue;
  std::string id;
  FilterFlags filter;
  PageFlags page;
};

struct ErrorsFlags {
  std::string queue;
  std::optional<std::string> status;
  std::optional<std::uint64_t> limit;
  bool no_header = false;
};

// The header `type`, else the payload's field `type`: what producers commonly write.
std::string type_of(JsonView job) {
  const auto header = job["headers"]["type"];
  const auto type = header.present() ? header : job["payload"]["type"];
  return type.is_object() || type.is_array() ? std::string() : text_of(type);
}

int list_dead(CommandContext& context, const InspectFlags& flags) {
  auto filter = filter_parameters(flags.filter);
  filter.emplace_back("status", "dead");
  filter.emplace_back("order", "newest");
  const JobListing listing{.queue = flags.queue,
                           .filter = std::move(filter),
                           .columns = {{.title = "ID"},
                                       {.title = "TYPE", .may_be_cut = true},
                                       {.title = "ATTEMPTS", .align = kRight},
                                       {.title = "LAST ERROR", .may_be_cut = true},
                                       {.title = "DIED AT"}},
                           .row = [&context](JsonView job) -> std::vector<Cell> {
                             return {Cell(context.shown_id(text_of(job["id"])), Style::bold),
                                     Cell(type_of(job)), Cell(text_of(job["attempts"])),
                                     Cell(text_of(job["last_error"])),
                                     Cell(text_of(job["ended_at"]))};
                           }};
  return print_job_listing(context, listing, flags.page);
}

// The whole envelope: it is JSON by nature, laid out for people or on one line for machines.
int inspect_one(CommandContext& context, const InspectFlags& flags) {
  const auto reply = context.client().show_job(flags.queue, flags.id);
  if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;
  const auto job = reply->json();
  const auto envelope = job["dead_letter"];
  if (!envelope.is_object()) {
    context.print_problem({.code = "wrong_status",
                           .message = fmt::format("job {} is {}, not dead; see: reprise queue job",
                                                  job["id"].string_or(flags.id).substr(0, 8),
                                                  text_of(job["status"]))});
    return kExitRefused;
  }
  context.print(context.json() ? escape_json(envelope.raw()) : indented_json(envelope.raw()));
  context.print("\n");
  return kExitOk;
}

std::vector<Cell> group_row(const CommandContext& context, JsonView group, Timestamp now) {
  const auto ago = [&](const char* field) {
    const std::string age = age_text(group[field], now);
    return Cell(age.empty() ? age : age + " ago");
  };
  return {Cell(text_of(group["fingerprint"])),
          Cell(text_of(group["count"]), Style::bold),
          ago("first_seen"),
          ago("last_seen"),
          Cell(context.shown_id(text_of(group["example"]))),
          Cell(text_of(group["error"]))};
}

int errors(CommandContext& context, const ErrorsFlags& flags) {
  client::QueryParameters filter;
  if (flags.status) filter.emplace_back("status", *flags.status);
  if (flags.limit) filter.emplace_back("limit", std::to_string(*flags.limit));
  const auto reply = context.client().list_errors(flags.queue, std::move(filter));
  if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table({{.title = "FINGERPRINT"},
               {.title = "COUNT", .align = kRight},
               {.title = "FIRST SEEN"},
               {.title = "LAST SEEN"},
               {.title = "EXAMPLE"},
               {.title = "ERROR", .may_be_cut = true}},
              context.terminal(), !flags.no_header);
  const auto now = wall_now();
  for (const auto& group : reply->json()["groups"].elements()) {
    table.add(group_row(context, group, now));
  }
  context.print(table.take_text());
  if (const auto other = reply->json()["other"].unsigned_integer().value_or(0); other > 0) {
    context.note(fmt::format("and {} jobs in smaller groups: --limit N shows more", other));
  }
  return kExitOk;
}

void add_inspect(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App& command = add_command(
      queue, {.name = "inspect",
              .description = "List dead jobs, the latest first, or show one with its whole story",
              .examples = "  reprise queue inspect orders\n"
                          "  reprise queue inspect orders --error timeout --newer-than 1h\n"
                          "  reprise queue inspect orders 7ZK3M9QA\n"
                          "  reprise queue inspect orders 7ZK3M9QA --json | jq .meta.history",
              .group = kGroup});
  add_queue_argument(command, flags->queue);
  command.add_option("ID", flags->id, "A dead job's id, or a prefix of it")->type_name("");
  add_page_flags(command, flags->page);
  add_filter_flags(command, flags->filter);
  commands.on_run(command, [flags](CommandContext& context) {
    if (flags->id.empty()) return list_dead(context, *flags);
    if (flags->filter.any()) throw CLI::ValidationError("one job by its ID takes no filter");
    return inspect_one(context, *flags);
  });
}

void add_errors(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<ErrorsFlags>();
  CLI::App& command = add_command(
      queue, {.name = "errors",
              .description = "Group dead and failed jobs by their error, the largest group first",
              .examples = "  reprise queue errors orders\n"
                          "  reprise queue errors orders --status dead --limit 10\n"
                          "  reprise queue retry orders --fingerprint 3f9a0c51d2e88b17",
              .group = kGroup});
  add_queue_argument(command, flags->queue);
  command.add_option("--status", flags->status, "Only dead, or only failed")
      ->type_name("STATUS")
      ->check(CLI::IsMember({"dead", "failed"}));
  command.add_option("--limit", flags->limit, "At most this many groups [50]")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_no_header(command, flags->no_header);
  commands.on_run(command, [flags](CommandContext& context) { return errors(context, *flags); });
}

}  // namespace

void add_queue_inspect_commands(CLI::App& queue, const Commands& commands) {
  add_inspect(queue, commands);
  add_errors(queue, commands);
}

}  // namespace reprise::cli
