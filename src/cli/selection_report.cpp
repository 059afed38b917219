#include "cli/selection_report.h"

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

std::uint64_t count_of(JsonView value) { return value.unsigned_integer().value_or(0); }

// Of a filter's skipped jobs the reply tells only the first ones, but the operation counts all.
std::uint64_t skipped_in(JsonView reply) {
  const auto counted = reply["operation"]["skipped"].unsigned_integer();
  return counted ? *counted : reply["skipped"].elements().size();
}

}  // namespace

void SelectionReport::add_reply(JsonView reply) {
  done_ += count_of(reply[verb_.counted]);
  skipped_ += skipped_in(reply);
  for (const auto& job : reply["skipped"].elements()) {
    problems_.push_back({.code = job["code"].string_or("wrong_status"),
                         .message = job["reason"].string_or(text_of(job["id"]))});
  }
  for (const auto& id : reply["not_found"].elements()) {
    ++not_found_;
    problems_.push_back({.code = "job_not_found",
                         .message = fmt::format("no job '{}' in queue '{}'", text_of(id), queue_)});
  }
  if (reply["operation"].is_object()) note_how_it_ended(reply["operation"]);
}

void SelectionReport::add_operation(JsonView operation) {
  done_ += count_of(operation["done"]);
  skipped_ += count_of(operation["skipped"]);
  note_how_it_ended(operation);
}

void SelectionReport::note_how_it_ended(JsonView operation) {
  const std::string state = text_of(operation["state"]);
  if (state == "done") return;
  ended_early_ = true;
  const std::string why = text_of(operation["error"]);
  problems_.push_back(
      {.code = state,
       .message = fmt::format("operation {} ended early{}{}", text_of(operation["id"]),
                              why.empty() ? "" : ": ", why)});
}

int SelectionReport::print(const CommandContext& context) const {
  context.print(
      fmt::format("{} {}, skipped {}, not found {}\n", verb_.counted, done_, skipped_, not_found_));
  for (const auto& problem : problems_) context.print_problem(problem);
  return exit_code();
}

int SelectionReport::exit_code() const {
  return skipped_ + not_found_ > 0 || ended_early_ ? kExitRefused : kExitOk;
}

std::string matched_text(JsonView dry_run) {
  const auto matched = count_of(dry_run["matched"]);
  return fmt::format("{} {}", matched, matched == 1 ? "job" : "jobs");
}

void print_dry_run(const CommandContext& context, DeadJobsVerb verb, JsonView dry_run) {
  const auto examples = dry_run["examples"].elements();
  context.print(fmt::format("would {} {}{}\n", verb.name, matched_text(dry_run),
                            examples.empty() ? "" : ", for example:"));
  if (examples.empty()) return;
  Table table({{.title = "ID"}, {.title = "DIED AT"}, {.title = "LAST ERROR", .may_be_cut = true}},
              context.terminal(), true);
  for (const auto& job : examples) {
    table.add({Cell(context.shown_id(text_of(job["id"])), Style::bold),
               Cell(text_of(job["ended_at"])), Cell(text_of(job["error"]))});
  }
  context.print(table.take_text());
}

}  // namespace reprise::cli
