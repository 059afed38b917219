// queue jobs, job, drop: look at jobs and delete some.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/job_record.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

using client::JsonView;
using client::QueryParameters;
using client::Reply;

constexpr char kGroup[] = "Jobs";
// Small enough that a page of large payloads stays a moderate reply.
constexpr std::uint64_t kPageJobs = 200;

struct JobsFlags {
  std::string queue;
  std::optional<std::string> status;
  std::optional<std::string> lane;
  std::optional<std::string> error;
  std::optional<std::string> older_than;
  std::optional<std::string> cursor;
  std::vector<std::string> headers;
  std::uint64_t limit = 50;
  bool all = false;
  bool no_header = false;
};

QueryParameters filter_of(const JobsFlags& flags) {
  QueryParameters filter;
  const auto add = [&](const char* name, const std::optional<std::string>& value) {
    if (value) filter.emplace_back(name, *value);
  };
  add("status", flags.status);
  add("lane", flags.lane);
  add("error", flags.error);
  add("older_than", flags.older_than);
  for (const auto& header : flags.headers) {
    auto [name, value] = split_header(header);
    filter.emplace_back("header." + name, std::move(value));
  }
  return filter;
}

// Where a listing goes: a table, or one JSON document made of the server's own bytes.
class JobsOutput {
 public:
  JobsOutput(CommandContext& context, bool header)
      : context_(context),
        table_({{.title = "ID"},
                {.title = "STATUS"},
                {.title = "PRIORITY", .align = Column::Align::right, .may_be_left_out = true},
                {.title = "ATTEMPTS", .align = Column::Align::right, .may_be_left_out = true},
                {.title = "FAILURES", .align = Column::Align::right, .may_be_left_out = true},
                {.title = "AGE", .align = Column::Align::right},
                {.title = "DUE", .align = Column::Align::right},
                {.title = "ERROR", .may_be_cut = true},
                {.title = "PAYLOAD", .may_be_cut = true}},
               context.terminal(), header) {}

  void page(const std::vector<JsonView>& jobs) {
    if (context_.json()) {
      for (const auto& job : jobs) {
        context_.print(begun_ ? "," : R"({"jobs":[)");
        context_.print(job.raw());
        begun_ = true;
      }
      return;
    }
    const auto now = wall_now();
    for (const auto& job : jobs) table_.add(row(job, now));
    context_.print(table_.take_text());
  }

  // `cursor` is null at the end of the listing.
  void end(JsonView cursor) {
    if (context_.json()) {
      context_.print(begun_ ? "" : R"({"jobs":[)");
      context_.print(fmt::format("],\"cursor\":{}}}\n", cursor.is_null() ? "null" : cursor.raw()));
    } else if (!cursor.is_null()) {
      context_.note("more: --cursor " + cursor.string_or(""));
    }
  }

 private:
  std::vector<Cell> row(JsonView job, Timestamp now) const {
    const auto due = job["due_at"].is_null() ? job["lease_expires_at"] : job["due_at"];
    return {Cell(context_.shown_id(text_of(job["id"])), Style::bold),
            status_cell(job["status"]),
            Cell(text_of(job["priority"])),
            Cell(text_of(job["attempts"])),
            Cell(text_of(job["failures"])),
            Cell(age_text(job["pushed_at"], now)),
            Cell(until_text(due, now)),
            Cell(text_of(job["last_error"])),
            payload_cell(job)};
  }

  CommandContext& context_;
  Table table_;
  bool begun_ = false;
};

int jobs(CommandContext& context, const JobsFlags& flags) {
  const auto filter = filter_of(flags);
  JobsOutput output(context, !flags.no_header);
  std::uint64_t left = flags.all ? std::numeric_limits<std::uint64_t>::max() : flags.limit;
  std::string cursor = flags.cursor.value_or("");
  // A page may be short, even empty, without being the last: only the cursor tells.
  while (true) {
    auto parameters = filter;
    parameters.emplace_back("limit", std::to_string(std::min(left, kPageJobs)));
    if (!cursor.empty()) parameters.emplace_back("cursor", cursor);
    const auto reply = context.client().list_jobs(flags.queue, std::move(parameters));
    if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;

    const auto found = reply->json()["jobs"].elements();
    output.page(found);
    left -= std::min<std::uint64_t>(left, found.size());
    const auto next = reply->json()["cursor"];
    cursor = next.string_or("");
    if (left == 0 || cursor.empty()) {
      output.end(next);
      return kExitOk;
    }
  }
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
  command.add_option("--status", flags->status, "scheduled, pending, active, failed or dead")
      ->type_name("STATUS")
      ->check(CLI::IsMember({"scheduled", "pending", "active", "failed", "dead"}));
  command.add_option("--lane", flags->lane, "fresh or retry")
      ->type_name("LANE")
      ->check(CLI::IsMember({"fresh", "retry"}));
  command.add_option("--error", flags->error, "A part of the last error")->type_name("TEXT");
  add_duration(command, "--older-than", flags->older_than, "Pushed at least this long ago");
  add_headers(command, flags->headers, "With this header; may be repeated");
  auto* limit = command.add_option("--limit", flags->limit, "At most this many")
                    ->type_name("N")
                    ->check(CLI::PositiveNumber)
                    ->capture_default_str();
  command.add_flag("--all", flags->all, "All of them, page after page")->excludes(limit);
  command.add_option("--cursor", flags->cursor, "Go on where an earlier listing ended")
      ->type_name("CURSOR");
  add_no_header(command, flags->no_header);
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
