// ShellScanner's quotes, substitutions and arithmetic, and the templates that the shell expands.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runbook/shell_decode.h"
#include "runbook/shell_scanner.h"

namespace reprise::runbook {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

void ShellScanner::single_quotes(Word* word) {
  const std::size_t begin = at_ + 1;
  const std::size_t end = text_.find('\'', begin);
  if (end >= end_) {
    fail(at_, "a single quote is not closed");
    return;
  }
  std::vector<Held> held;
  hold(begin, end, held);
  at_ = end + 1;
  if (word == nullptr) {
    release(held, false);
    return;
  }
  word->quoted = true;
  word->literal.append(text_.substr(begin, end - begin));
  word->held.insert(word->held.end(), held.begin(), held.end());
}

void ShellScanner::ansi_quotes(Word* word) {
  const std::size_t begin = at_ + 2;
  std::size_t end = begin;
  while (end < end_ && text_[end] != '\'') end += text_[end] == '\\' ? 2 : 1;
  if (end >= end_) {
    fail(at_, "a single quote is not closed");
    return;
  }
  std::vector<Held> held;
  hold(begin, end, held);
  at_ = end + 1;
  if (word == nullptr) {
    release(held, false);
    return;
  }
  word->quoted = true;
  word->literal.append(text_.substr(begin, end - begin));
  word->held.insert(word->held.end(), held.begin(), held.end());
}

void ShellScanner::double_quotes(Word* word) {
  const Nesting nesting(*this);
  const std::size_t begin = at_++;
  if (word != nullptr) word->quoted = true;
  while (!at_end() && !failed_ && peek() != '"') {
    if (peek() == '\\') {
      at_ = std::min(at_ + 2, end_);
    } else if (peek() == '$') {
      dollar(true, word);
    } else if (peek() == '`') {
      backticks(true);
    } else {
      if (word != nullptr) word->literal.push_back(peek());
      ++at_;
    }
  }
  if (failed_) return;
  if (at_end()) {
    fail(begin, "a double quote is not closed");
    return;
  }
  ++at_;
}

void ShellScanner::backticks(bool in_double_quotes) {
  const Nesting nesting(*this);
  const std::size_t begin = at_ + 1;
  std::size_t end = begin;
  while (end < end_ && text_[end] != '`') end += text_[end] == '\\' ? 2 : 1;
  if (end >= end_) {
    fail(at_, "a backtick is not closed");
    return;
  }
  if (failed_) return;
  const Decoded inside = decode_backticks(text_, begin, end, in_double_quotes);
  if (!scan_inside(inside.text, inside.places, options_.nested_shell, true)) {
    failed_ = true;
    at_ = end_;
    return;
  }
  at_ = end + 1;
}

void ShellScanner::dollar(bool quoted, Word* word) {
  const char next = peek(1);
  if (next == '{') {
    braces(quoted, word);
    return;
  }
  if (!quoted && next == '\'') {
    ansi_quotes(word);
    return;
  }
  if (!quoted && next == '"') {
    ++at_;
    double_quotes(word);
    return;
  }
  if (word != nullptr) word->literal.push_back(kExpansionMark);
  if (next == '(' && peek(2) == '(') {
    at_ += 3;
    arithmetic('(', ')', 2);
  } else if (next == '(') {
    at_ += 2;
    command_substitution();
  } else if (next == '[') {
    at_ += 2;
    arithmetic('[', ']', 1);
  } else if (next != '\0' && std::string_view("$!?#@*-").find(next) != std::string_view::npos) {
    at_ += 2;
  } else {
    ++at_;
  }
}

void ShellScanner::braces(bool quoted, Word* word) {
  const TemplateText found = read_template(text_.substr(0, end_), at_, options_.scope);
  if (found.kind == TemplateText::Kind::foreign) {
    if (word != nullptr) word->literal.push_back(kExpansionMark);
    parameter(quoted);
    return;
  }
  expand_here(found, quoted, word);
}

// A template that the shell is to expand, right here.
void ShellScanner::expand_here(const TemplateText& found, bool quoted, Word* word) {
  const std::size_t begin = std::exchange(at_, found.end);
  ++templates_seen_;
  if (word != nullptr) {
    word->literal.push_back(kTemplateMark);
    word->live = std::min(word->live, begin);
  }
  if (found.kind != TemplateText::Kind::ours) {
    problem(begin, false, found.problem);
    return;
  }
  if (!found.problem.empty()) problem(begin, true, found.problem);
  if (computing_ > 0) {
    problem(begin, false,
            fmt::format("'{}' cannot stand where the shell computes, it would run commands in the "
                        "value: $((…)), ((…)), $[…], an index, an offset; compare with [ … ]",
                        template_name(found.reference)));
    return;
  }
  const std::string& variable = references_.variable_for(found.reference);
  const std::string reference =
      fmt::format("${{{}{}}}", variable, options_.nested_shell ? "?" : "");
  edits_.push_back(
      {begin, found.end, quoted ? reference : fmt::format("\"{}\"", reference), variable});
}

// ${name…} of the shell.
void ShellScanner::parameter(bool quoted) {
  const Nesting nesting(*this);
  const std::size_t begin = at_;
  at_ += 2;
  if (peek() == '!' || (peek() == '#' && peek(1) != '}')) ++at_;
  const std::size_t name = at_;
  while (is_name_char(peek())) ++at_;
  if (at_ == name && !at_end() && peek() != '}') ++at_;
  if (peek() == '[') {
    ++at_;
    arithmetic('[', ']', 1);
  }
  const char sign = peek();
  constexpr std::string_view kDefaults = "-=?+";
  if (sign == ':' && kDefaults.find(peek(1)) == std::string_view::npos) {
    ++computing_;
    parameter_word(quoted, BraceWord::like_outside);
    --computing_;
  } else {
    const bool is_default = sign == ':' || kDefaults.find(sign) != std::string_view::npos;
    parameter_word(quoted, is_default ? BraceWord::like_outside : BraceWord::pattern);
  }
  if (failed_) return;
  if (at_end()) {
    fail(begin, "'${' has no closing brace");
    return;
  }
  ++at_;
}

// Up to the closing brace, which stays to be read.
void ShellScanner::parameter_word(bool quoted, BraceWord kind) {
  // Patterns have quotes of their own, whatever is around them.
  const bool inner_quoted = quoted && kind != BraceWord::pattern;
  while (!at_end() && !failed_ && peek() != '}') {
    switch (peek()) {
      case '\\':
        at_ = std::min(at_ + 2, end_);
        break;
      case '\'':
        if (inner_quoted) {
          ++at_;
        } else {
          single_quotes(nullptr);
        }
        break;
      case '"':
        double_quotes(nullptr);
        break;
      case '$':
        dollar(inner_quoted, nullptr);
        break;
      case '`':
        backticks(quoted);
        break;
      default:
        ++at_;
    }
  }
}

// From behind the opening bracket.
void ShellScanner::command_substitution() {
  const Nesting nesting(*this);
  auto outer = std::exchange(waiting_, {});
  script(true);
  if (!failed_ && !waiting_.empty()) {
    fail(waiting_.front().offset,
         fmt::format("here-document '{}' is not ended", waiting_.front().delimiter));
  }
  waiting_ = std::move(outer);
  if (!failed_) ++at_;
}

// Up to the brackets that close `depth` open ones.
void ShellScanner::arithmetic(char open, char close, std::size_t depth) {
  const Nesting nesting(*this);
  const std::size_t begin = at_ - depth;
  ++computing_;
  while (!at_end() && !failed_ && depth > 0) {
    const char c = peek();
    if (c == '\\') {
      at_ = std::min(at_ + 2, end_);
    } else if (c == '\'') {
      single_quotes(nullptr);
    } else if (c == '"') {
      double_quotes(nullptr);
    } else if (c == '$') {
      dollar(true, nullptr);
    } else if (c == '`') {
      backticks(false);
    } else {
      if (c == open) ++depth;
      if (c == close) --depth;
      ++at_;
    }
  }
  --computing_;
  if (!failed_ && depth > 0) fail(begin, fmt::format("'{}' has no closing bracket", open));
}

}  // namespace reprise::runbook
