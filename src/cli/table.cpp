#include "cli/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/escape.h"

namespace reprise::cli {
namespace {

constexpr std::size_t kGap = 2;
// Of what a section holds.
constexpr std::string_view kIndent = "  ";
// A column cut below this tells nothing any more.
constexpr std::size_t kNarrowest = 12;

}  // namespace

Cell::Cell(std::string_view text, Style style)
    : text_(text.empty() ? "-" : escape_text(text)), style_(style) {}

Cell Cell::json(std::string_view json) {
  Cell cell("");
  if (!json.empty()) cell.text_ = escape_json(json);
  return cell;
}

Table::Table(std::vector<Column> columns, const Terminal& terminal, bool header)
    : columns_(std::move(columns)), terminal_(terminal), header_due_(header) {
  for (const auto& column : columns_) {
    widths_.push_back(std::max(column.min_width, header ? column.title.size() : 0));
  }
}

void Table::add(std::vector<Cell> row) {
  REPRISE_CHECK(row.size() == columns_.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    widths_[i] = std::max(widths_[i], display_width(row[i].text()));
  }
  rows_.push_back(std::move(row));
}

std::string Table::take_text() {
  if (terminal_.out_is_tty && shown_.empty()) choose_columns();
  const auto widths = cut_widths();
  std::string out;
  if (std::exchange(header_due_, false)) {
    std::vector<Cell> titles;
    for (const auto& column : columns_) titles.emplace_back(column.title, Style::bold);
    out += line(titles, widths);
  }
  for (const auto& row : rows_) out += line(row, widths);
  rows_.clear();
  return out;
}

std::size_t Table::total_width(const std::vector<std::size_t>& widths) const {
  std::size_t total = kGap * (shown_.size() - 1);
  for (const std::size_t i : shown_) total += widths[i];
  return total;
}

// Once, so that all pages of a listing have the same columns.
void Table::choose_columns() {
  for (std::size_t i = 0; i < columns_.size(); ++i) shown_.push_back(i);
  while (total_width(cut_widths()) > terminal_.columns) {
    const auto dispensable =
        std::ranges::find_if(shown_, [&](std::size_t i) { return columns_[i].may_be_left_out; });
    if (dispensable == shown_.end()) return;
    shown_.erase(dispensable);
  }
}

std::vector<std::size_t> Table::cut_widths() const {
  auto widths = widths_;
  for (auto i = shown_.rbegin(); i != shown_.rend(); ++i) {
    const std::size_t total = total_width(widths);
    if (total <= terminal_.columns) break;
    if (!columns_[*i].may_be_cut || widths[*i] <= kNarrowest) continue;
    widths[*i] -= std::min(total - terminal_.columns, widths[*i] - kNarrowest);
  }
  return widths;
}

std::string Table::line(const std::vector<Cell>& row,
                        const std::vector<std::size_t>& widths) const {
  if (terminal_.out_is_tty) return aligned_line(row, widths);
  std::string out;
  for (const auto& cell : row) {
    if (!out.empty()) out += '\t';
    out += cell.text();
  }
  return out + '\n';
}

std::string Table::aligned_line(const std::vector<Cell>& row,
                                const std::vector<std::size_t>& widths) const {
  std::string out;
  for (const std::size_t i : shown_) {
    const std::string text =
        columns_[i].may_be_cut ? cut_to_width(row[i].text(), widths[i]) : row[i].text();
    const std::size_t width = display_width(text);
    const std::string padding(widths[i] > width ? widths[i] - width : 0, ' ');
    const bool right = columns_[i].align == Column::Align::right;
    if (i != shown_.front()) out.append(kGap, ' ');
    if (right) out += padding;
    out += painted(text, row[i].style(), terminal_.colour);
    if (!right && i != shown_.back()) out += padding;
  }
  return out + '\n';
}

void Record::section(std::string_view title) {
  lines_.push_back(
      {.kind = Kind::title, .path = {}, .label = escape_text(title), .value = Cell("")});
}

void Record::field(std::string_view path, std::string_view label, Cell value) {
  lines_.push_back({.kind = Kind::field,
                    .path = escape_text(path),
                    .label = escape_text(label),
                    .value = std::move(value)});
}

void Record::table(Table& table) {
  std::string lines;
  const std::string text = table.take_text();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    lines.append(kIndent).append(text, begin, end - begin);
    begin = end;
  }
  lines_.push_back({.kind = Kind::table, .path = {}, .label = lines, .value = Cell("")});
}

Terminal Record::inside() const {
  Terminal terminal = terminal_;
  terminal.columns -= std::min(terminal.columns, kIndent.size());
  return terminal;
}

std::string Record::text() const {
  if (terminal_.out_is_tty) return sections();
  std::string out = "FIELD\tVALUE\n";
  for (const auto& line : lines_) {
    if (line.kind == Kind::field) out += line.path + '\t' + line.value.text() + '\n';
  }
  return out;
}

std::string Record::sections() const {
  std::size_t label_width = 0;
  for (const auto& line : lines_) {
    if (line.kind == Kind::field) label_width = std::max(label_width, display_width(line.label));
  }
  std::string out;
  for (const auto& line : lines_) {
    if (line.kind == Kind::title) {
      if (!out.empty()) out += '\n';
      out += painted(line.label, Style::bold, terminal_.colour) + '\n';
      continue;
    }
    if (line.kind == Kind::table) {
      out += line.label;
      continue;
    }
    const std::string padding(label_width - display_width(line.label) + kGap, ' ');
    out.append(kIndent);
    out += painted(line.label, Style::dim, terminal_.colour) + padding +
           painted(line.value.text(), line.value.style(), terminal_.colour) + '\n';
  }
  return out;
}

}  // namespace reprise::cli
