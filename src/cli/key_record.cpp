#include "cli/key_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "model/job.h"

namespace reprise::cli {
namespace {

constexpr auto kRight = Column::Align::right;

bool names_keys(JsonView keys) {
  return std::ranges::any_of(keys["top"].elements(), [](JsonView each) {
    return each["key"].string_or("") != kDefaultFairnessKey;
  });
}

bool all_zero(JsonView counts) {
  return std::ranges::all_of(counts.members(),
                             [](const auto& each) { return each.second.number() == 0.0; });
}

std::vector<Cell> row(Cell key, JsonView counts) {
  return {std::move(key),
          Cell(text_of(counts["pending"])),
          Cell(text_of(counts["active"])),
          Cell(text_of(counts["weight"])),
          Cell(text_of(counts["delivered"])),
          Cell(percent_text(counts["share"]))};
}

}  // namespace

void add_keys(Record& record, JsonView keys, const Terminal& terminal) {
  if (!terminal.out_is_tty) {
    if (keys.present()) add_fields(record, "stats.keys", keys);
    return;
  }
  if (!names_keys(keys)) return;
  record.section(
      fmt::format("Keys: {} with jobs; delivered in the last minute", text_of(keys["active"])));
  std::vector<Column> columns{{.title = "KEY", .may_be_cut = true}};
  for (const char* title : {"PENDING", "ACTIVE", "WEIGHT", "DELIVERED", "SHARE"}) {
    columns.push_back({.title = title, .align = kRight});
  }
  Table table(std::move(columns), record.inside(), true);
  for (const auto& key : keys["top"].elements()) {
    table.add(row(Cell(text_of(key["key"]), Style::bold), key));
  }
  if (const auto other = keys["other"]; !all_zero(other)) {
    table.add(row(Cell("(other)", Style::dim), other));
  }
  record.table(table);
}

}  // namespace reprise::cli
