#include "cli/project_record.h"

#include <fmt/format.h>

#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

constexpr auto kRight = Column::Align::right;

bool is_error(JsonView finding) { return finding["severity"].string_or("") != "warning"; }

// "2026-01-31T08:15:10.250Z" is told as "08:15:10": it is mostly today's.
std::string time_of_day(JsonView timestamp) {
  const std::string text = timestamp.string_or("");
  return parse_timestamp(text) ? text.substr(11, 8) : text;
}

}  // namespace

std::string project_state(JsonView project) {
  if (!project["broken"].is_true()) return "ok";
  return project["missing"].is_true() ? "missing" : "broken";
}

std::vector<Column> project_columns() {
  return {{.title = "PROJECT"},
          {.title = "ROOT", .may_be_cut = true},
          {.title = "STATE"},
          {.title = "QUEUES", .align = kRight},
          {.title = "PIPELINES", .align = kRight},
          {.title = "WORKERS", .align = kRight}};
}

std::vector<Cell> project_row(JsonView project) {
  const std::string state = project_state(project);
  return {Cell(text_of(project["name"]), Style::bold),
          Cell(text_of(project["root"])),
          Cell(state, state == "ok" ? Style::green : Style::red),
          Cell(text_of(project["queues"])),
          Cell(text_of(project["pipelines"])),
          Cell(text_of(project["workers"]))};
}

std::string finding_text(JsonView finding) {
  std::string text = finding["file"].string_or("");
  if (const auto line = finding["line"].unsigned_integer().value_or(0); line > 0) {
    text += fmt::format(":{}", line);
  }
  if (!text.empty()) text += ": ";
  if (!is_error(finding)) text += "warning: ";
  if (const std::string path = finding["path"].string_or(""); !path.empty()) text += path + ": ";
  return text + finding["message"].string_or("");
}

std::vector<std::string> warning_texts(JsonView project) {
  std::vector<std::string> texts;
  for (const auto& finding : project["findings"].elements()) {
    if (!is_error(finding)) texts.push_back(finding_text(finding));
  }
  return texts;
}

std::string broken_text(JsonView project) {
  if (!project["broken"].is_true()) return {};
  const auto loaded_at = project["loaded_at"];
  std::string text = fmt::format(
      "runbook of {} is broken, {}", text_of(project["name"]),
      loaded_at.is_null() ? std::string("none is in force")
                          : fmt::format("the version of {} is in force", time_of_day(loaded_at)));
  for (const auto& finding : project["findings"].elements()) {
    if (is_error(finding)) return text + ": " + finding_text(finding);
  }
  return text;
}

}  // namespace reprise::cli
