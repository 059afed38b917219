#include "cli/breaker_record.h"

#include <fmt/format.h>

#include "cli/reply_fields.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

// "5% of 18 attempts"
std::string failures_text(JsonView breaker) {
  const auto ended = breaker["ended"].unsigned_integer().value_or(0);
  if (ended == 0) return "no attempts yet";
  return fmt::format("{} of {} {}", percent_text(breaker["failure_rate"]), ended,
                     ended == 1 ? "attempt" : "attempts");
}

}  // namespace

Cell breaker_cell(JsonView state, JsonView open_until, Timestamp now, const std::string& more) {
  const std::string name = text_of(state);
  std::string text = name;
  if (const auto left = until_text(open_until, now); name == "open" && !left.empty()) {
    text += fmt::format(" for another {}", left);
  }
  return Cell(text + more, name == "closed" ? Style::green
                           : name == "open" ? Style::red
                                            : Style::yellow);
}

void add_breaker(Record& record, JsonView breaker, const Terminal& terminal, Timestamp now) {
  if (!terminal.out_is_tty) {
    if (breaker.present()) add_fields(record, "breaker", breaker);
    return;
  }
  if (!breaker.is_object()) return;
  record.section("Breaker, since the server started");
  record.field("", "state", breaker_cell(breaker["state"], breaker["open_until"], now));
  record.field("", "open until", Cell(text_of(breaker["open_until"])));
  record.field("", "opened", Cell(text_of(breaker["opened"])));
  record.field("", "failures spared", Cell(text_of(breaker["spared"])));
  record.field("", "failed in its window", Cell(failures_text(breaker)));
  record.field("", "canaries out", Cell(text_of(breaker["canaries_out"])));
}

}  // namespace reprise::cli
