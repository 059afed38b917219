#include "cli/worker_record.h"

#include <fmt/format.h>

#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

Cell worker_status_cell(JsonView status) {
  const std::string text = text_of(status);
  if (text == "running") return Cell(text, Style::green);
  if (text == "stopped") return Cell(text, Style::dim);
  return Cell(text, Style::yellow);
}

// ": 2 jobs still run"; nothing when none does.
std::string still_running(JsonView worker) {
  const auto active = worker["active"].unsigned_integer().value_or(0);
  if (active == 0) return {};
  return active == 1 ? std::string(": 1 job still runs")
                     : fmt::format(": {} jobs still run", active);
}

}  // namespace

std::vector<Column> worker_columns(bool with_namespace) {
  std::vector<Column> columns;
  if (with_namespace) columns.push_back({.title = "NAMESPACE"});
  columns.push_back({.title = "WORKER"});
  columns.push_back({.title = "QUEUE"});
  columns.push_back({.title = "STATUS"});
  columns.push_back({.title = "ACTIVE", .align = Column::Align::right});
  columns.push_back({.title = "LAST POLL", .may_be_left_out = true});
  columns.push_back({.title = "LAST ERROR", .may_be_cut = true});
  return columns;
}

std::vector<Cell> worker_row(JsonView worker, bool with_namespace) {
  std::vector<Cell> row;
  if (with_namespace) row.emplace_back(text_of(worker["namespace"]));
  row.emplace_back(text_of(worker["name"]), Style::bold);
  row.emplace_back(text_of(worker["queue"]));
  row.push_back(worker_status_cell(worker["status"]));
  row.emplace_back(fmt::format("{}/{}", text_of(worker["active"]), text_of(worker["concurrency"])));
  row.emplace_back(text_of(worker["last_poll_at"]));
  row.emplace_back(text_of(worker["last_error"]), Style::red);
  return row;
}

std::string worker_result_text(std::string_view verb, JsonView result) {
  const std::string name = text_of(result["name"]);
  const std::string status = text_of(result["status"]);
  if (verb == "start") {
    return result["was_running"].is_true() ? name + " was running; woken" : "started " + name;
  }
  if (verb == "resize") {
    return fmt::format("resized {} to {}", name, text_of(result["worker"]["concurrency"]));
  }
  if (verb == "restart") return "restarting " + name;
  if (status == "stopped") return "stopped " + name;
  return "stopping " + name + still_running(result["worker"]);
}

}  // namespace reprise::cli
