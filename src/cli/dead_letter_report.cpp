#include "cli/dead_letter_report.h"

#include <fmt/format.h>

#include "base/json_view.h"
#include "base/json_writer.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/json_layout.h"
#include "cli/reply_fields.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

using spool::DeadLetter;

void write_text(JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name);
  text.empty() ? json.null() : json.value(text);
}

void write_letter(JsonWriter& json, const DeadLetter& letter) {
  json.begin_object();
  json.key("id").value(letter.id);
  write_text(json, "type", letter.type);
  json.key("attempts").value(letter.attempts);
  write_text(json, "lastError", letter.last_error);
  write_text(json, "deadLetteredAt", letter.dead_lettered_at);
  write_text(json, "reason", letter.reason);
  json.key("file").value(letter.name);
  json.key("retryable").value(letter.cannot_retry.empty());
  json.end_object();
}

void add_letter_fields(Record& record, const DeadLetter& letter) {
  record.section("Dead letter");
  record.field("", "id", Cell(letter.id, Style::bold));
  record.field("", "event type", Cell(letter.type));
  record.field("", "attempts", Cell(std::to_string(letter.attempts)));
  record.field("", "last error", Cell(letter.last_error));
  record.field("", "dead-lettered", Cell(letter.dead_lettered_at));
  record.field("", "reason", Cell(letter.reason));
  record.field("", "file", Cell(letter.name));
  record.field("", "can be retried",
               Cell(letter.cannot_retry.empty() ? "yes" : "no: " + letter.cannot_retry));
}

}  // namespace

std::string dead_letters_json(std::span<const DeadLetter> letters) {
  JsonWriter json;
  json.begin_object().key("deadLetters").begin_array();
  for (const auto& letter : letters) write_letter(json, letter);
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string dead_letters_table(std::span<const DeadLetter> letters, const Terminal& terminal,
                               bool header) {
  // Ids that were made within a second begin alike: whole they can be told apart.
  Table table({{.title = "ID"},
               {.title = "EVENT TYPE", .may_be_cut = true},
               {.title = "ATTEMPTS", .align = Column::Align::right, .may_be_left_out = true},
               {.title = "LAST ERROR", .may_be_cut = true},
               {.title = "DEAD-LETTERED AT"}},
              terminal, header);
  for (const auto& letter : letters) {
    table.add({Cell(letter.id, Style::bold), Cell(letter.type),
               Cell(std::to_string(letter.attempts)), Cell(letter.last_error),
               Cell(letter.dead_lettered_at)});
  }
  return table.take_text();
}

std::string dead_letter_json(const DeadLetter& letter, std::string_view stored,
                             std::string_view raw_head) {
  if (const JsonView whole(stored); whole.present()) return escape_json(whole.raw()) + "\n";
  JsonWriter json;
  json.begin_object().key("event").null().key("meta");
  write_letter(json, letter);
  json.key("raw").value(raw_head);
  json.end_object();
  return json.take() + "\n";
}

std::string dead_letter_record(const DeadLetter& letter, std::string_view stored,
                               std::string_view raw_head, const Terminal& terminal) {
  const JsonView whole(stored);
  const JsonView event = letter.has_envelope ? whole["event"] : whole;
  Record record(terminal);
  if (!terminal.out_is_tty) {
    for (const auto& [name, member] : whole.members()) add_fields(record, name, member);
    if (!raw_head.empty()) record.field("raw", "", Cell(raw_head));
    return record.text();
  }
  add_letter_fields(record, letter);
  std::string text = record.text();
  if (event.is_object()) text += "\nEvent\n" + indented_json(event.raw()) + "\n";
  if (!raw_head.empty()) text += "\nRaw bytes\n" + escape_text(raw_head) + "\n";
  return text;
}

std::string done_json(DeadJobsVerb verb, const DeadLettersDone& done) {
  JsonWriter json;
  json.begin_object();
  json.key(verb.counted).value(done.done);
  json.key("skipped").begin_array();
  for (const auto& [id, reason, code] : done.skipped) {
    json.begin_object().key("id").value(id).key("reason").value(reason).end_object();
  }
  json.end_array().key("notFound").begin_array();
  for (const auto& id : done.not_found) json.value(id);
  json.end_array();
  if (done.dry_run) json.key("dryRun").value(true);
  json.end_object();
  return json.take() + "\n";
}

std::string done_text(DeadJobsVerb verb, const DeadLettersDone& done) {
  return fmt::format("{} {}, {} {}, not found {}\n",
                     done.dry_run ? fmt::format("would {}", verb.name) : verb.counted, done.done,
                     done.dry_run ? "skip" : "skipped", done.skipped.size(), done.not_found.size());
}

std::vector<Problem> done_problems(const DeadLettersDone& done) {
  std::vector<Problem> problems;
  for (const auto& [id, reason, code] : done.skipped) {
    problems.push_back({.code = std::string(errc_info(code).wire_name),
                        .message = fmt::format("{}: {}", id, reason)});
  }
  for (const auto& id : done.not_found) {
    problems.push_back({.code = "not_found", .message = fmt::format("no dead letter '{}'", id)});
  }
  return problems;
}

int done_exit_code(const DeadLettersDone& done) {
  return done.skipped.empty() && done.not_found.empty() ? kExitOk : kExitRefused;
}

}  // namespace reprise::cli
