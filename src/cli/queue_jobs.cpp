// queue jobs, job, drop: look at jobs and delete some.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/job_listing.h"
#include "cli/job_record.h"
#include "cli/job_selection.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Jobs";
constexpr auto kRight = Column::Align::right;

struct JobsFlags {
  std::string queue;
  std::optional<std::string> status;
  std::optional<std::string> lane;
  FilterFlags filter;
  PageFlags page;
};

std::vector<Cell> job_row(const CommandContext& context, JsonView job, Timestamp now) {
  const auto due = job["due_at"].is_null() ? job["lease_expires_at"] : job["due_at"];
  return {Cell(context.shown_id(text_of(job["id"])), Style::bold),
          status_cell(job["status"]),
          Cell(text_of(job["priority"])),
          Cell(text_of(job["attempts"])),
          Cell(text_of(job["failures"])),
          Cell(age_text(job["pushed_at"], now)),
          Cell(until_text(due, now)),
          Cell(text_of(job["last_error"])),
          payload_cell(job)};
}

int jobs(CommandContext& context, const JobsFlags& flags) {
  auto filter = filter_parameters(flags.filter);
  if (flags.status) filter.emplace_back("status", *flags.status);
  if (flags.lane) filter.emplace_back("lane", *flags.lane);
  const JobListing listing{
      .queue = flags.queue,
      .filter = std::move(filter),
      .columns = {{.title = "ID"},
                  {.title = "STATUS"},
                  {.title = "PRIORITY", .align = kRight, .may_be_left_out = true},
                  {.title = "ATTEMPTS", .align = kRight, .may_be_left_out = true},
                  {.title = "FAILURES", .align = kRight, .may_be_left_out = true},
                  {.title = "AGE", .align = kRight},
                  {.title = "DUE", .align = kRight},
                  {.title = "ERROR", .may_be_cut = true},
                  {.title = "PAYLOAD", .may_be_cut = true}},
      .row = [&context](JsonView job) { return job_row(context, job, wall_now()); }};
  return print_job_listing(context, listing, flags.page);
}

int job(CommandContext& context, const std::string& queue, const std::string& id) {
  const auto reply = context.client().show_job(queue, id);
  if (const int code = context.report(reply, queue); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(job_record(reply->json(), context.terminal(), wall_now()));
  return kExitOk;
}

int drop(CommandContext& context, const std::string& queue, const std::vector<std::string>& ids,
         bool header) {
  Table table({{.title = "ID", .min_width = 8}, {.title = "WAS"}}, context.terminal(), header);
  int worst = kExitOk;
  for (const auto& id : ids) {
    const auto reply = context.client().drop_job(queue, id);
    const int code = context.report(reply, queue);
    worst = std::max(worst, code);
    if (code == kExitUnreachable) break;
    if (code != kExitOk) continue;
    if (context.json()) {
      context.print_json(*reply);
    } else {
      table.add({Cell(context.shown_id(text_of(reply->json()["id"])), Style::bold),
                 status_cell(reply->json()["status"])});
      context.print(table.take_text());
    }
  }
  return worst;
}

void add_jobs(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<JobsFlags>();
  CLI::App& command = add_command(
      queue,
      {.name = "jobs",
       .description = "Browse jobs in push order",
       .examples = "  reprise queue jobs orders --status pending --limit 20\n"
                   "  reprise queue jobs orders --status dead --error timeout --older-than 1d\n"
                   "  reprise queue jobs orders --header tenant=a --all --json",
       .group = kGroup});
  add_queue_argument(command, flags->queue);
  command
      .add_option("--status", flags->status,
                  "scheduled, pending, active, failed, dead or completed")
      ->type_name("STATUS")
      ->check(CLI::IsMember({"scheduled", "pending", "active", "failed", "dead", "completed"}));
  command.add_option("--lane", flags->lane, "fresh or retry")
      ->type_name("LANE")
      ->check(CLI::IsMember({"fresh", "retry"}));
  add_page_flags(command, flags->page);
  add_filter_flags(command, flags->filter);
  commands.on_run(command, [flags](CommandContext& context) { return jobs(context, *flags); });
}

void add_job(CLI::App& queue, const Commands& commands) {
  struct Flags {
    std::string queue;
    std::string id;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      add_command(queue, {.name = "job",
                          .description = "Show one job whole, with its attempt history",
                          .examples = "  reprise queue job orders 7ZK3M9QA\n"
                                      "  reprise queue job orders 7ZK3M9QA --json | jq .history",
                          .group = kGroup});
  add_queue_argument(command, flags->queue);
  command.add_option("ID", flags->id, "The job's id, or a prefix of it")->required()->type_name("");
  commands.on_run(
      command, [flags](CommandContext& context) { return job(context, flags->queue, flags->id); });
}

void add_drop(CLI::App& queue, const Commands& commands) {
  struct Flags {
    std::string queue;
    std::vector<std::string> ids;
    bool no_header = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      add_command(queue, {.name = "drop",
                          .description = "Delete jobs, whatever their status",
                          .examples = "  reprise queue drop orders 7ZK3M9QA 1FQ0W8C5",
                          .group = kGroup});
  add_queue_argument(command, flags->queue);
  command.add_option("ID", flags->ids, "Ids of jobs, or prefixes")->required()->type_name("");
  add_no_header(command, flags->no_header);
  commands.on_run(command, [flags](CommandContext& context) {
    return drop(context, flags->queue, flags->ids, !flags->no_header);
  });
}

}  // namespace

void add_queue_jobs_commands(CLI::App& queue, const Commands& commands) {
  add_jobs(queue, commands);
  add_job(queue, commands);
  add_drop(queue, commands);
}

}  // namespace reprise::cli
