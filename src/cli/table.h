// Table and Record: how results look.
// On a terminal: aligned, coloured, cut to its width. Piped: a header line, tabs between columns,
// nothing padded or cut (docs/cli.md, "Output").
// A Cell escapes its text when it is made, so nothing that is printed here can carry controls.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal.h"

namespace reprise::cli {

class Cell {
 public:
  // Absent text is shown as "-".
  explicit Cell(std::string_view text, Style style = Style::plain);
  // `json` stays valid JSON.
  static Cell json(std::string_view json);

  const std::string& text() const { return text_; }
  Style style() const { return style_; }

 private:
  std::string text_;
  Style style_ = Style::plain;
};

struct Column {
  enum class Align { left, right };
  std::string title;
  Align align = Align::left;
  // When the terminal is too narrow; left out are as few as needed, the first ones first.
  bool may_be_cut = false;
  bool may_be_left_out = false;
  std::size_t min_width = 0;
};

class Table {
 public:
  Table(std::vector<Column> columns, const Terminal& terminal, bool header);

  // As many cells as columns.
  void add(std::vector<Cell> row);
  // No rows wait to be taken.
  bool empty() const { return rows_.empty(); }
  // The rows added since the last call, before the first of them the header. Columns only ever grow
  // wider, so a long listing can be printed page by page.
  std::string take_text();

 private:
  void choose_columns();
  std::vector<std::size_t> cut_widths() const;
  std::size_t total_width(const std::vector<std::size_t>& widths) const;
  std::string aligned_line(const std::vector<Cell>& row,
                           const std::vector<std::size_t>& widths) const;
  std::string line(const std::vector<Cell>& row, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  Terminal terminal_;
  bool header_due_;
  std::vector<std::size_t> widths_;  // of all columns, uncut
  std::vector<std::size_t> shown_;   // columns that fit, on a terminal
  std::vector<std::vector<Cell>> rows_;
};

// One thing with many fields: titled sections on a terminal, FIELD and VALUE piped.
class Record {
 public:
  explicit Record(const Terminal& terminal) : terminal_(terminal) {}

  void section(std::string_view title);
  // `path` is the field's place in the JSON reply, shown when piped; `label` is for a terminal.
  void field(std::string_view path, std::string_view label, Cell value);
  // A table in the section that was begun last; only for a terminal. It is made for inside().
  void table(Table& table);
  // The terminal as wide as a section leaves it.
  Terminal inside() const;
  std::string text() const;

 private:
  enum class Kind { title, field, table };
  struct Line {
    Kind kind;
    std::string path;
    std::string label;
    Cell value;
  };
  std::string sections() const;

  Terminal terminal_;
  std::vector<Line> lines_;
};

}  // namespace reprise::cli
