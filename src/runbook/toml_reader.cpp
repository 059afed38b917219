#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runbook/node.h"

namespace reprise::runbook {
namespace {

// toml++ makes a level of tables of each part of a dotted key and ends them by recursion: without a
// bound a file of dots would take all of the stack.
constexpr std::size_t kMostKeyParts = 16;

// Steps over what stands in quotes, from the quote at `at`; to the end when it does not end.
std::size_t skip_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool tripled = text.substr(at, 3) == std::string(3, quote);
  const std::string end(tripled ? 3 : 1, quote);
  at += end.size();
  while (at < text.size() && !text.substr(at).starts_with(end)) {
    if (!tripled && text[at] == '\n') return at;
    at += quote == '"' && text[at] == '\\' ? 2 : 1;
  }
  at = std::min(at + end.size(), text.size());
  // """a"""" ends with a quote of its own.
  while (tripled && at < text.size() && text[at] == quote) ++at;
  return at;
}

// Where a key of too many parts stands, if there is one.
std::optional<std::size_t> find_long_key(std::string_view text) {
  std::size_t dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = skip_quoted(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++dots >= kMostKeyParts) return at;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0;
    ++at;
  }
  return std::nullopt;
}

Position position_of(const toml::source_region& source) {
  return {.line = source.begin.line, .column = source.begin.column};
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

// From toml++'s tree to ours.
class Converter {
 public:
  explicit Converter(std::string_view text) : lines_(split_lines(text)) {}

  std::optional<Node> convert(const toml::node& from, std::size_t depth);
  std::optional<Position> too_deep() const { return too_deep_; }

 private:
  bool convert_items(const toml::array& from, Node& node, std::size_t depth);
  bool convert_members(const toml::table& from, Node& node, std::size_t depth);
  void find_text(Node& node) const;

  std::vector<std::string_view> lines_;
  std::optional<Position> too_deep_;
};

// Where the characters of a text begin: those of """ and ''' may do so on the line below.
void Converter::find_text(Node& node) const {
  node.text_line = node.position.line;
  if (node.position.line == 0 || node.position.line > lines_.size()) return;
  const auto line = lines_[node.position.line - 1];
  // The column counts characters, so look for the quotes instead.
  std::size_t at = 0;
  for (std::uint32_t column = 1; column < node.position.column && at < line.size(); ++at) {
    const bool starts_one =
        at + 1 >= line.size() || (static_cast<unsigned char>(line[at + 1]) & 0xC0) != 0x80;
    if (starts_one) ++column;
  }
  const auto rest = line.substr(std::min(at, line.size()));
  node.multiline = rest.starts_with("\"\"\"") || rest.starts_with("'''");
  if (node.multiline && (rest.size() == 3 || rest.substr(3) == "\r")) ++node.text_line;
}

bool Converter::convert_items(const toml::array& from, Node& node, std::size_t depth) {
  node.kind = Node::Kind::list;
  for (const toml::node& item : from) {
    auto converted = convert(item, depth + 1);
    if (!converted) return false;
    node.items.push_back(std::move(*converted));
  }
  return true;
}

bool Converter::convert_members(const toml::table& from, Node& node, std::size_t depth) {
  node.kind = Node::Kind::table;
  for (const auto& [key, value] : from) {
    auto converted = convert(value, depth + 1);
    if (!converted) return false;
    node.members.push_back(
        {std::string(key.str()), position_of(key.source()), std::move(*converted)});
  }
  // toml++ has them by name.
  std::ranges::stable_sort(node.members, {}, &Member::position);
  return true;
}

std::optional<Node> Converter::convert(const toml::node& from, std::size_t depth) {
  Node node;
  node.position = position_of(from.source());
  if (depth > kMostDepth) {
    too_deep_ = node.position;
    return std::nullopt;
  }
  if (const auto* table = from.as_table()) {
    if (!convert_members(*table, node, depth)) return std::nullopt;
  } else if (const auto* array = from.as_array()) {
    if (!convert_items(*array, node, depth)) return std::nullopt;
  } else if (const auto* text = from.as_string()) {
    node.kind = Node::Kind::text;
    node.text = text->get();
    find_text(node);
  } else if (const auto* integer = from.as_integer()) {
    node.kind = Node::Kind::integer;
    node.text = fmt::format("{}", integer->get());
  } else if (const auto* real = from.as_floating_point()) {
    node.kind = Node::Kind::real;
    node.text = fmt::format("{}", real->get());
  } else if (const auto* flag = from.as_boolean()) {
    node.kind = Node::Kind::boolean;
    node.text = flag->get() ? "true" : "false";
  } else {
    node.kind = Node::Kind::time;
  }
  return node;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// "a.b" of a line like "[a.b]" or "[[a.b]] # comment"; nothing: it is no header.
std::optional<std::string_view> header_of(std::string_view line) {
  auto words = trimmed(line);
  if (!words.starts_with('[')) return std::nullopt;
  words.remove_prefix(words.starts_with("[[") ? 2 : 1);
  return trimmed(words.substr(0, words.find(']')));
}

struct Definition {
  std::string path;
  std::uint32_t first = 0;  // the line; 0: it cannot be told
};

// Where `name`, which stands at `line` once more, was defined first. A header's name is its whole
// path; that of a field is not.
Definition first_definition(std::string_view text, const std::string& name, std::uint32_t line,
                            bool is_header) {
  Definition found{.path = name};
  std::string_view table;
  const auto lines = split_lines(text);
  for (std::uint32_t number = 1; number < line && number <= lines.size(); ++number) {
    const auto words = lines[number - 1];
    if (const auto header = header_of(words)) {
      table = *header;
      if (is_header && table == name && found.first == 0) found.first = number;
    } else if (!is_header && trimmed(words.substr(0, words.find('='))) == name) {
      found.first = number;  // the last is the one in the same table
    }
  }
  if (!is_header && !table.empty()) found.path = fmt::format("{}.{}", table, name);
  return found;
}

SyntaxProblem describe(const toml::parse_error& error, std::string_view text) {
  SyntaxProblem problem{position_of(error.source()), "", std::string(error.description())};
  // "Error while parsing table header: cannot redefine existing table 'queue.orders'"
  constexpr std::string_view kTwice = "cannot redefine existing ";
  const std::size_t twice = problem.message.find(kTwice);
  const std::size_t quote = problem.message.find('\'', twice);
  const std::size_t end = problem.message.find('\'', quote + 1);
  if (twice == std::string::npos || quote == std::string::npos || end == std::string::npos) {
    problem.message.insert(0, "not TOML: ");
    return problem;
  }
  const std::string name = problem.message.substr(quote + 1, end - quote - 1);
  const bool is_header = problem.message.find("table header") != std::string::npos;
  const auto [path, first] = first_definition(text, name, problem.position.line, is_header);
  problem.path = path;
  problem.message = fmt::format("'{}' is defined twice", name);
  if (first != 0) problem.message += fmt::format(", first at line {}", first);
  return problem;
}

}  // namespace

Document read_toml(std::string_view text) {
  Document document;
  if (const auto bad = find_bad_utf8(text)) {
    document.problems.push_back({position_at(text, *bad), "", "not UTF-8"});
    return document;
  }
  if (const auto long_key = find_long_key(text)) {
    document.problems.push_back({position_at(text, *long_key), "",
                                 fmt::format("a key of more than {} parts", kMostKeyParts)});
    return document;
  }
  try {
    const toml::table table = toml::parse(text);
    Converter converter(text);
    document.root = converter.convert(table, 1);
    if (!document.root) {
      document.problems.push_back({converter.too_deep().value_or(Position{}), "",
                                   fmt::format("nested deeper than {} levels", kMostDepth)});
    }
  } catch (const toml::parse_error& error) {
    document.problems.push_back(describe(error, text));
  }
  return document;
}

}  // namespace reprise::runbook
