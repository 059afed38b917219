#include "daemon/salvage_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_writer.h"
#include "base/text.h"

namespace reprise::daemon {
namespace {

using storage::SalvagedQueue;
using storage::SalvageReport;

constexpr std::size_t kDamageShown = 20;
constexpr std::size_t kTextColumns = 2;  // the rest are numbers
using Row = std::array<std::string, 7>;

Row row_of(const SalvagedQueue& queue) {
  return {queue.name.ns,
          queue.name.name,
          fmt::to_string(queue.live_kept),
          fmt::to_string(queue.live_lost),
          fmt::to_string(queue.live_reset),
          fmt::to_string(queue.dead_kept),
          fmt::to_string(queue.dead_lost)};
}

std::string aligned_line(const Row& row, const std::array<std::size_t, 7>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 0) line += "  ";
    line += i < kTextColumns ? fmt::format("{:<{}}", row[i], widths[i])
                             : fmt::format("{:>{}}", row[i], widths[i]);
  }
  return line + "\n";
}

void write_counts(JsonWriter& out, const SalvagedQueue& counts) {
  out.key("jobs").begin_object();
  out.key("kept").value(counts.live_kept).key("lost").value(counts.live_lost);
  out.key("reset").value(counts.live_reset).end_object();
  out.key("dead").begin_object();
  out.key("kept").value(counts.dead_kept).key("lost").value(counts.dead_lost).end_object();
}

std::string batches_text(std::uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "batch" : "batches");
}

std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace

std::string salvage_table(const SalvageReport& report, bool aligned, bool header) {
  std::vector<Row> rows;
  if (header) rows.push_back({"NAMESPACE", "QUEUE", "KEPT", "LOST", "RESET", "DEAD", "DEAD LOST"});
  for (const SalvagedQueue& queue : report.queues) rows.push_back(row_of(queue));
  std::array<std::size_t, 7> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += aligned ? aligned_line(row, widths) : fmt::format("{}\n", fmt::join(row, "\t"));
  }
  return text;
}

std::string salvage_json(const SalvageReport& report, const SalvagePaths& paths) {
  JsonWriter out;
  out.begin_object();
  out.key("data").value(paths.from).key("to").value(paths.to);
  out.key("lost_anything").value(report.lost_anything());
  write_counts(out, report.totals());
  out.key("journal").begin_object();
  out.key("batches_read").value(report.batches_read);
  out.key("batches_lost").value(report.batches_lost).end_object();
  out.key("places_lost").value(report.places_lost);
  out.key("queues").begin_array();
  for (const SalvagedQueue& queue : report.queues) {
    out.begin_object();
    out.key("name").value(queue.name.name).key("namespace").value(queue.name.ns);
    out.key("recovered").value(queue.recovered);
    write_counts(out, queue);
    out.end_object();
  }
  out.end_array();
  out.key("damage").begin_array();
  for (const std::string& line : report.damage) out.value(line);
  out.end_array().end_object();
  return out.take();
}

std::vector<std::string> salvage_notes(const SalvageReport& report, const SalvagePaths& paths) {
  std::vector<std::string> notes;
  for (const std::string& line : report.damage) {
    if (notes.size() == kDamageShown) {
      notes.push_back("… and more of the kind; --json shows all");
      break;
    }
    notes.push_back("damaged: " + line);
  }
  const SalvagedQueue sum = report.totals();
  notes.push_back(fmt::format("kept {} and {}", counted(sum.live_kept, "job"),
                              counted(sum.dead_kept, "dead job")));
  if (report.lost_anything()) {
    notes.push_back(
        fmt::format("lost {} and {}; {} of the journal and {} of the tables cannot be "
                    "read",
                    counted(sum.live_lost, "job"), counted(sum.dead_lost, "dead job"),
                    batches_text(report.batches_lost), counted(report.places_lost, "place")));
  } else {
    notes.push_back("nothing was lost");
  }
  if (sum.live_reset > 0) {
    notes.push_back(fmt::format("{} lost the count of attempts, delay or lease, and {} fresh again",
                                counted(sum.live_reset, "job"),
                                sum.live_reset == 1 ? "is" : "are"));
  }
  for (const SalvagedQueue& queue : report.queues) {
    if (queue.recovered) {
      notes.push_back(fmt::format("queue {} had lost its name and config", queue.name.name));
    }
  }
  notes.push_back("start a server on it with: reprise serve --data " + shell_quoted(paths.to));
  return notes;
}

}  // namespace reprise::daemon
