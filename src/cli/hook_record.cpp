#include "cli/hook_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/breaker_record.h"
#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "model/hook.h"

namespace reprise::cli {
namespace {

std::string opened_text(JsonView hook) {
  const auto opened = hook["opened"].unsigned_integer().value_or(0);
  if (opened == 0) return {};
  return fmt::format(" (has opened {} {})", opened, opened == 1 ? "time" : "times");
}

// "error 2, timeout 1": the faults that there were.
std::string failed_text(JsonView failed) {
  std::string text;
  for (const auto& [fault, calls] : failed.members()) {
    if (calls.unsigned_integer().value_or(0) == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", fault, text_of(calls));
  }
  return text.empty() ? "0" : text;
}

std::string last_error_text(JsonView hook, Timestamp now) {
  std::string text = text_of(hook["last_error"]);
  const auto age = age_text(hook["last_error_at"], now);
  if (!text.empty() && !age.empty()) text += fmt::format("  ({} ago)", age);
  return text;
}

std::string succeeded_text(JsonView hook) {
  const std::string remembered = text_of(hook["remembered"]);
  std::string text = text_of(hook["succeeded"]);
  if (!remembered.empty() && remembered != "0") text += fmt::format(" ({} remembered)", remembered);
  return text;
}

void add_section(Record& record, const std::string& name, JsonView hook, Timestamp now) {
  record.section(fmt::format("Hook {}, since the server started", name));
  record.field("", "version", Cell(text_of(hook["version"])));
  record.field("", "breaker",
               breaker_cell(hook["breaker"], hook["open_until"], now, opened_text(hook)));
  record.field("", "succeeded", Cell(succeeded_text(hook)));
  const auto failed = failed_text(hook["failed"]);
  record.field("", "failed", Cell(failed, failed == "0" ? Style::plain : Style::yellow));
  record.field("", "failures in a row", Cell(text_of(hook["failures_in_a_row"])));
  record.field("", "in flight", Cell(text_of(hook["in_flight"])));
  record.field("", "last error", Cell(last_error_text(hook, now)));
}

}  // namespace

std::string version_of_hook(JsonView queue, HookKind hook) {
  const auto name = hook_name(hook);
  const auto source = queue["config"][name];
  if (source.is_null()) return {};
  const std::string told = text_of(queue["hooks"][name]["version"]);
  return told.empty() ? hook_version(source.string_or("")) : told;
}

Cell hook_source_cell(JsonView queue, HookKind hook, const Terminal& terminal) {
  const std::string version = version_of_hook(queue, hook);
  if (version.empty() || !terminal.out_is_tty) return Cell(version);
  const std::string source = queue["config"][hook_name(hook)].string_or("");
  auto lines = std::ranges::count(source, '\n');
  if (!source.ends_with('\n')) ++lines;
  return Cell(fmt::format("{} ({} {})", version, lines, lines == 1 ? "line" : "lines"));
}

void add_hooks(Record& record, JsonView queue, const Terminal& terminal, Timestamp now) {
  for (const auto& [name, hook] : queue["hooks"].members()) {
    if (terminal.out_is_tty) {
      add_section(record, name, hook, now);
    } else {
      add_fields(record, "hooks." + name, hook);
    }
  }
}

}  // namespace reprise::cli
