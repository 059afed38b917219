#include "cli/run_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/ids.h"
#include "cli/exit_code.h"
#include "cli/reply_fields.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

constexpr auto kRight = Column::Align::right;

Style style_of(std::string_view status) {
  if (status == "running") return Style::cyan;
  if (status == "succeeded") return Style::green;
  if (status == "failed") return Style::red;
  return Style::yellow;
}

Cell run_status_cell(JsonView status) {
  const std::string text = text_of(status);
  return Cell(text, style_of(text));
}

// How long it took, or has taken so far. Never negative: clocks of two machines differ.
std::string took_text(JsonView run_or_step, Timestamp now) {
  const auto began = parse_timestamp(run_or_step["started_at"].string_or(""));
  if (!began) return {};
  const auto ended = parse_timestamp(run_or_step["ended_at"].string_or(""));
  return humanize_duration(std::max(ended.value_or(now) - *began, Duration::zero()));
}

// A job's id is cut like all ids; the key of an external item is somebody else's.
std::string job_text(JsonView run, const Terminal& terminal) {
  std::string job = text_of(run["job"]);
  if (terminal.out_is_tty && run["type"].string_or("") == "persisted") {
    job = job.substr(0, kShownIdChars);
  }
  return job;
}

void add_steps(Record& record, JsonView steps, Timestamp now) {
  record.section("Steps");
  Table table({{.title = "STEP"},
               {.title = "VISIT", .align = kRight, .may_be_left_out = true},
               {.title = "STATUS"},
               {.title = "EXIT", .align = kRight},
               {.title = "TOOK"},
               {.title = "ERROR", .may_be_cut = true}},
              record.inside(), true);
  for (const auto& step : steps.elements()) {
    table.add({Cell(text_of(step["name"]), Style::bold), Cell(text_of(step["visit"])),
               run_status_cell(step["status"]), Cell(text_of(step["exit_code"])),
               Cell(took_text(step, now)), Cell(text_of(step["error"]))});
  }
  record.table(table);
}

}  // namespace

bool run_is_running(JsonView run) { return run["status"].string_or("") == "running"; }

int run_exit_code(JsonView run) {
  const std::string status = run["status"].string_or("");
  if (status == "succeeded") return kExitOk;
  if (status == "cancelled") return kExitCancelled;
  if (status == "lost") return kExitLost;
  if (status == "running") return kExitStillRunning;
  return kExitRefused;
}

Problem run_problem(JsonView run) {
  const std::string status = text_of(run["status"]);
  const std::string id = text_of(run["id"]);
  if (status == "running") return {.code = status, .message = fmt::format("run {} still runs", id)};
  Problem problem{.code = text_of(run["error_type"]), .message = text_of(run["error"])};
  if (problem.code.empty()) problem.code = status;
  // "cancelled" alone would leave open what was.
  if (problem.message.empty() || problem.message == status) {
    problem.message = fmt::format("run {} {} {}", id, status == "failed" ? "has" : "was", status);
  }
  return problem;
}

std::vector<Column> run_columns(bool with_namespace) {
  std::vector<Column> columns;
  columns.push_back({.title = "ID"});
  if (with_namespace) columns.insert(columns.begin(), {.title = "NAMESPACE"});
  columns.push_back({.title = "STATUS"});
  columns.push_back({.title = "PIPELINE"});
  columns.push_back({.title = "WORKER", .may_be_left_out = true});
  columns.push_back({.title = "JOB"});
  columns.push_back({.title = "STARTED", .may_be_left_out = true});
  columns.push_back({.title = "TOOK"});
  columns.push_back({.title = "ERROR", .may_be_cut = true});
  return columns;
}

std::vector<Cell> run_row(JsonView run, bool with_namespace, const Terminal& terminal,
                          Timestamp now) {
  std::vector<Cell> row;
  if (with_namespace) row.emplace_back(text_of(run["namespace"]));
  const std::string id = text_of(run["id"]);
  row.emplace_back(terminal.out_is_tty ? id.substr(0, kShownIdChars) : id, Style::bold);
  row.push_back(run_status_cell(run["status"]));
  row.emplace_back(text_of(run["pipeline"]));
  row.emplace_back(text_of(run["worker"]));
  row.emplace_back(job_text(run, terminal));
  row.emplace_back(text_of(run["started_at"]));
  row.emplace_back(took_text(run, now));
  row.emplace_back(text_of(run["error"]));
  return row;
}

std::string run_text(JsonView run, const Terminal& terminal, Timestamp now) {
  Record record(terminal);
  record.section(fmt::format("Run {} (namespace {}), {}, {} {}", text_of(run["id"]),
                             text_of(run["namespace"]), text_of(run["status"]),
                             run_is_running(run) ? "for" : "took", took_text(run, now)));
  for (const auto& [name, value] : run.members()) {
    if (name == "steps" && terminal.out_is_tty) continue;
    if (name == "log_bytes" || name == "log_left_out") {
      const bool kept = name == "log_bytes";
      record.field(name, kept ? "log" : "log, left out",
                   Cell(terminal.out_is_tty ? bytes_text(value) : text_of(value)));
    } else {
      add_fields(record, name, value);
    }
  }
  if (terminal.out_is_tty) add_steps(record, run["steps"], now);
  return record.text();
}

}  // namespace reprise::cli
