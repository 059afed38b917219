// A strict JSON reader that knows where everything stands.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "base/json_problem.h"
#include "runbook/node.h"

namespace reprise::runbook {
namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

// Makes the tree of a text that find_json_problem has found to be JSON; so it never looks for
// mistakes, except for keys that stand twice, which JSON allows and we do not.
class Builder {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  Node build(std::vector<SyntaxProblem>& problems) {
    problems_ = &problems;
    return value("");
  }

 private:
  Node value(const std::string& path);
  void object(Node& node, const std::string& path);
  void array(Node& node, const std::string& path);
  std::string string();
  std::uint32_t code_unit();
  void escape(std::string& out);
  std::string_view bare_word();
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != npos) ++at_;
  }
  // Moves on only: counting from the start for each value would take time squared.
  Position here() {
    for (; counted_ < at_; ++counted_) {
      if (text_[counted_] == '\n') {
        position_ = {.line = position_.line + 1, .column = 1};
      } else if ((static_cast<unsigned char>(text_[counted_]) & 0xC0) != 0x80) {
        ++position_.column;
      }
    }
    return position_;
  }

  static constexpr auto npos = std::string_view::npos;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;
  Position position_{.line = 1, .column = 1};
  std::vector<SyntaxProblem>* problems_ = nullptr;
};

Node Builder::value(const std::string& path) {
  skip_space();
  Node node;
  node.position = here();
  switch (text_[at_]) {
    case '{':
      node.kind = Node::Kind::table;
      object(node, path);
      return node;
    case '[':
      node.kind = Node::Kind::list;
      array(node, path);
      return node;
    case '"':
      node.kind = Node::Kind::text;
      node.text = string();
      node.text_line = node.position.line;
      return node;
    default:
      break;
  }
  node.text = bare_word();
  if (node.text == "null") {
    node.kind = Node::Kind::null;
  } else if (node.text == "true" || node.text == "false") {
    node.kind = Node::Kind::boolean;
  } else {
    const bool whole = node.text.find_first_of(".eE") == npos;
    node.kind = whole ? Node::Kind::integer : Node::Kind::real;
  }
  return node;
}

void Builder::object(Node& node, const std::string& path) {
  std::unordered_map<std::string, Position> seen;
  ++at_;
  skip_space();
  while (text_[at_] != '}') {
    Member member;
    member.position = here();
    member.key = string();
    const std::string full = path.empty() ? member.key : fmt::format("{}.{}", path, member.key);
    skip_space();
    ++at_;  // the colon
    member.value = value(full);
    if (const auto [first, is_new] = seen.emplace(member.key, member.position); is_new) {
      node.members.push_back(std::move(member));
    } else {
      problems_->push_back(
          {member.position, full,
           fmt::format("'{}' is defined twice, first at line {}", member.key, first->second.line)});
    }
    skip_space();
    if (text_[at_] == ',') ++at_;
    skip_space();
  }
  ++at_;
}

void Builder::array(Node& node, const std::string& path) {
  ++at_;
  skip_space();
  while (text_[at_] != ']') {
    node.items.push_back(value(fmt::format("{}.{}", path, node.items.size())));
    skip_space();
    if (text_[at_] == ',') ++at_;
    skip_space();
  }
  ++at_;
}

std::string_view Builder::bare_word() {
  const std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
  const auto word = text_.substr(at_, end - at_);
  at_ = end;
  return word;
}

std::string Builder::string() {
  std::string out;
  ++at_;
  while (text_[at_] != '"') {
    if (text_[at_] == '\\') {
      escape(out);
    } else {
      out.push_back(text_[at_++]);
    }
  }
  ++at_;
  return out;
}

std::uint32_t Builder::code_unit() {
  const std::string digits(text_.substr(at_, 4));
  at_ += 4;
  return static_cast<std::uint32_t>(std::strtoul(digits.c_str(), nullptr, 16));
}

void Builder::escape(std::string& out) {
  const char which = text_[at_ + 1];
  at_ += 2;
  constexpr std::string_view kLetters = "bfnrt";
  constexpr std::string_view kMeanings = "\b\f\n\r\t";
  if (which != 'u') {
    const std::size_t index = kLetters.find(which);
    out.push_back(index == npos ? which : kMeanings[index]);
    return;
  }
  std::uint32_t code = code_unit();
  if (code >= 0xD800 && code < 0xDC00) {
    at_ += 2;
    code = 0x10000 + ((code - 0xD800) << 10) + (code_unit() - 0xDC00);
  }
  append_utf8(out, code);
}

}  // namespace

Document read_json(std::string_view text) {
  Document document;
  const auto fail = [&](std::size_t offset, std::string message) {
    document.problems.push_back({position_at(text, offset), "", std::move(message)});
  };
  if (const auto bad = find_bad_utf8(text)) {
    fail(*bad, "not UTF-8");
    return document;
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    fail(0, "begins with a byte order mark; save it as UTF-8 without one");
    return document;
  }
  if (const auto problem = find_json_problem(text)) {
    fail(problem->offset, fmt::format("not JSON: {}", problem->problem));
    return document;
  }
  Node root = Builder(text).build(document.problems);
  if (!root.is(Node::Kind::table)) {
    fail(0, fmt::format("must be an object, not {}", root.kind_name()));
    return document;
  }
  document.root = std::move(root);
  return document;
}

}  // namespace reprise::runbook
