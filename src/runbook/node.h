// Node: a value of a runbook's file with the place it stands at; one tree for TOML and JSON, so
// that everything above reads both alike. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::runbook {

// Counted from 1; columns in characters.
struct Position {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Member;

struct Node {
  enum class Kind : std::uint8_t {
    null,     // JSON only
    boolean,  // text: true or false
    integer,  // text: its digits
    real,     // text: as JSON writes it, or nan and inf
    text,
    list,
    table,
    time,  // TOML only: a date or a time of day
  };

  Kind kind = Kind::null;
  Position position;
  std::string text;  // a text's characters; a number or a boolean as JSON has it
  // The line that a text's first character stands on, and whether its line breaks are those of the
  // file (TOML's """ and ''').
  std::uint32_t text_line = 0;
  bool multiline = false;
  std::vector<Node> items;      // of a list
  std::vector<Member> members;  // of a table, in the order of the file

  bool is(Kind wanted) const { return kind == wanted; }
  // Null when there is none, or this is no table.
  const Member* find(std::string_view key) const;
  // "a number", "text", "a list": for messages.
  std::string_view kind_name() const;
};

struct Member {
  std::string key;
  Position position;  // of the key
  Node value;
};

// How deep tables and lists may nest in a file.
inline constexpr std::size_t kMostDepth = 64;

// What JSON has no word for, the first of it: a time, nan, inf.
const Node* first_without_json(const Node& node);
// The value as compact JSON; numbers as they were spelled. Only if first_without_json found
// nothing.
std::string to_json(const Node& node);

// What is wrong with a file as such.
struct SyntaxProblem {
  Position position;
  std::string path;  // of the key that stands twice; else empty
  std::string message;
};

// What a file holds. Without `root` it could not be read; beside one, keys stand twice.
struct Document {
  std::optional<Node> root;  // a table
  std::vector<SyntaxProblem> problems;
};

// Strict: UTF-8, one object, no key twice, no comma too many, kMostDepth at most.
Document read_json(std::string_view text);
Document read_toml(std::string_view text);

// Of a byte in `text`.
Position position_at(std::string_view text, std::size_t offset);
// The first byte that is not UTF-8; nothing: all is well.
std::optional<std::size_t> find_bad_utf8(std::string_view text);

}  // namespace reprise::runbook
