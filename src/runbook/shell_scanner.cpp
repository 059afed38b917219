#include "runbook/shell_scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reprise::runbook {
namespace {

constexpr std::string_view kMeta = " \t\n;&|<>()";
constexpr std::size_t kMostProblems = 100;
constexpr std::size_t kMostLiteral = 4096;
// How far the end of a[…]= is looked for.
constexpr std::size_t kMostSubscript = 4096;

bool is_meta(char c) { return kMeta.find(c) != std::string_view::npos; }

}  // namespace

bool ShellScanner::scan() {
  computing_ = options_.computing ? 1 : 0;
  script(false);
  if (!failed_ && !waiting_.empty()) {
    fail(waiting_.front().offset,
         fmt::format("here-document '{}' is not ended", waiting_.front().delimiter));
  }
  return !failed_;
}

bool ShellScanner::fail(std::size_t offset, std::string message) {
  if (!failed_) problems_.push_back({offset, false, std::move(message)});
  failed_ = true;
  at_ = end_;
  return false;
}

void ShellScanner::problem(std::size_t offset, bool warning, std::string message) {
  if (problems_.size() < kMostProblems) problems_.push_back({offset, warning, std::move(message)});
}

// Commands up to the closing bracket, which stays to be read, or to the end.
void ShellScanner::script(bool in_brackets) {
  const Nesting nesting(*this);
  const std::size_t begin = at_;
  Script script;
  while (!at_end() && !failed_) {
    const bool closes = peek() == ')' && !script.in_test && !script.in_pattern();
    if (closes && in_brackets) return;
    script_token(script);
  }
  if (in_brackets && !failed_) fail(begin == 0 ? 0 : begin - 1, "'(' has no closing bracket");
}

void ShellScanner::script_token(Script& script) {
  const char c = peek();
  if (c == ' ' || c == '\t' || c == '\r') {
    ++at_;
  } else if (c == '\\' && peek(1) == '\n') {
    at_ += 2;
  } else if (c == '\n') {
    ++at_;
    here_documents();
    if (!script.in_test) script.begin_command();
  } else if (c == '#') {
    at_ = std::min(text_.find('\n', at_), end_);
  } else if (script.in_test && is_meta(c)) {
    ++at_;
  } else if ((c == '<' || c == '>') && peek(1) != '(') {
    redirection(script);
  } else if (c == '&' && peek(1) == '>') {
    ++at_;
    redirection(script);
  } else if (c == ';' || c == '&' || c == '|') {
    separator(script);
  } else if (c == '(') {
    open_bracket(script);
  } else if (c == ')') {
    ++at_;
    if (script.in_pattern()) script.cases.back().phase = CasePhase::body;
    script.begin_command();
  } else {
    word(script);
  }
}

void ShellScanner::separator(Script& script) {
  const auto rest = text_.substr(at_, end_ - at_);
  const bool ends_case =
      rest.starts_with(";;") || rest.starts_with(";&");  // ";;&" begins with the first
  if (ends_case && !script.cases.empty() && script.cases.back().phase == CasePhase::body) {
    script.cases.back() = {.phase = CasePhase::pattern, .at_start = true};
    at_ += rest.starts_with(";;&") ? 3 : 2;
  } else {
    ++at_;
  }
  script.begin_command();
}

void ShellScanner::open_bracket(Script& script) {
  if (script.in_pattern()) {
    ++at_;
    return;
  }
  if (peek(1) == '(' && (script.command_position || script.after_for)) {
    at_ += 2;
    arithmetic('(', ')', 2);
    script.begin_command();
    return;
  }
  ++at_;
  this->script(true);
  if (failed_) return;
  ++at_;
  // A function's body may follow.
  script.begin_command();
}

void ShellScanner::redirection(Script& script) {
  const auto rest = text_.substr(at_, end_ - at_);
  if (rest.starts_with("<<<")) {
    at_ += 3;
  } else if (rest.starts_with("<<")) {
    const bool strips_tabs = rest.starts_with("<<-");
    at_ += strips_tabs ? 3 : 2;
    here_delimiter(script, strips_tabs);
    return;
  } else {
    at_ += 1;
    while (peek() == '>' || peek() == '&' || peek() == '|') ++at_;
  }
  script.redirected = true;
}

void ShellScanner::word(Script& script) {
  Word word{.begin = at_};
  const std::size_t before = templates_seen_;
  word_parts(word);
  if (!failed_) finish_word(script, word, templates_seen_ != before);
}

void ShellScanner::word_parts(Word& word) {
  while (!at_end() && !failed_ && word_part(word)) {
    if (word.literal.size() > kMostLiteral) word.literal.resize(kMostLiteral);
  }
}

// False: the word has ended.
bool ShellScanner::word_part(Word& word) {
  const char c = peek();
  switch (c) {
    case '\\':
      if (peek(1) != '\n' && at_ + 1 < end_) word.literal.push_back(peek(1));
      word.quoted = word.quoted || peek(1) != '\n';
      at_ = std::min(at_ + 2, end_);
      return true;
    case '\'':
      single_quotes(&word);
      return true;
    case '"':
      double_quotes(&word);
      return true;
    case '$':
      dollar(false, &word);
      return true;
    case '`':
      word.literal.push_back(kExpansionMark);
      backticks(false);
      return true;
    case '(':
      return bracket_in_word(word);
    case '[':
      if (subscript(word)) return true;
      break;
    case '<':
    case '>':
      if (peek(1) != '(') return false;
      at_ += 2;
      word.literal.push_back(kExpansionMark);
      command_substitution();
      return true;
    default:
      if (is_meta(c)) return false;
      break;
  }
  word.literal.push_back(c);
  ++at_;
  return true;
}

// A list's, or a pattern's: a=(…), @(…).
bool ShellScanner::bracket_in_word(Word& word) {
  if (word.literal.empty()) return false;
  const char before = word.literal.back();
  if (before == '=' && is_assignment(word.literal)) {
    ++at_;
    list_words();
    return true;
  }
  if (std::string_view("?*+@!").find(before) == std::string_view::npos) return false;
  ++at_;
  pattern_group(word);
  return true;
}

void ShellScanner::list_words() {
  const Nesting nesting(*this);
  const std::size_t begin = at_;
  while (!at_end() && !failed_ && peek() != ')') {
    if (peek() == '\n') {
      ++at_;
      here_documents();
    } else if (peek() == '#') {
      at_ = std::min(text_.find('\n', at_), end_);
    } else if (is_meta(peek()) && !((peek() == '<' || peek() == '>') && peek(1) == '(')) {
      ++at_;
    } else {
      Word word{.begin = at_, .in_list = true};
      word_parts(word);
      if (!failed_) release(word.held, false);
    }
  }
  if (failed_) return;
  if (at_end()) {
    fail(begin - 1, "'(' has no closing bracket");
    return;
  }
  ++at_;
}

void ShellScanner::pattern_group(Word& word) {
  const Nesting nesting(*this);
  const std::size_t begin = at_;
  while (!at_end() && !failed_ && peek() != ')') {
    if (peek() == '(') {
      ++at_;
      pattern_group(word);
    } else if (is_meta(peek())) {
      ++at_;
    } else {
      word_part(word);
    }
  }
  if (failed_) return;
  if (at_end()) {
    fail(begin - 1, "'(' has no closing bracket");
    return;
  }
  ++at_;
}

// a[…]= and, in a list, […]=: the shell computes the index. False: it is another bracket.
bool ShellScanner::subscript(Word& word) {
  const bool is_index = word.literal.empty() ? word.in_list : is_identifier(word.literal);
  if (!is_index || word.quoted) return false;
  std::size_t depth = 0;
  std::size_t end = at_;
  const std::size_t farthest = std::min(end_, at_ + kMostSubscript);
  for (; end < farthest; ++end) {
    if (text_[end] == '\\') ++end;
    if (end >= farthest) return false;
    if (text_[end] == '[') ++depth;
    if (text_[end] == ']' && --depth == 0) break;
  }
  const auto behind = text_.substr(end + 1 < end_ ? end + 1 : end_);
  if (end >= farthest || !(behind.starts_with('=') || behind.starts_with("+="))) return false;
  ++at_;
  arithmetic('[', ']', 1);
  word.literal.append("[]");
  return true;
}

void ShellScanner::finish_word(Script& script, Word& word, bool has_template) {
  const std::vector<std::string>& words = script.command->words;
  const bool is_target = std::exchange(script.redirected, false);
  const bool is_code = !is_target && !script.in_test && is_code_next(words);
  if (is_code && word.live != std::string_view::npos) {
    problem(word.live, true,
            fmt::format("'{}' gets the value as a part of a command and would run what is in it; "
                        "put that command into single quotes",
                        words.front()));
  }
  if (!word.held.empty()) {
    if (is_code) {
      scan_code(word);
    } else {
      release(word.held, false);
    }
  }
  if (is_target || finish_case_word(script, word)) return;
  if (script.in_test) {
    finish_test_word(script, word, has_template);
    return;
  }
  if (has_template) {
    if (const auto why = computing_builtin(words, word.literal); !why.empty()) {
      problem(word.begin, false,
              fmt::format("a template cannot stand in {}: the shell computes there, and would run "
                          "commands in the value",
                          why));
    }
  }
  finish_command_word(script, word);
}

// True: the word was one of case … in, or a pattern.
bool ShellScanner::finish_case_word(Script& script, const Word& word) {
  if (script.cases.empty() || script.in_test) return false;
  Case& innermost = script.cases.back();
  if (innermost.phase == CasePhase::body) return false;
  const bool was_start = std::exchange(innermost.at_start, false);
  if (innermost.phase == CasePhase::subject) {
    if (!was_start && !word.quoted && word.literal == "in") {
      innermost = {.phase = CasePhase::pattern, .at_start = true};
    }
  } else if (was_start && !word.quoted && word.literal == "esac") {
    script.cases.pop_back();
  }
  return true;
}

void ShellScanner::finish_test_word(Script& script, const Word& word, bool has_template) {
  if (!word.quoted && word.literal == "]]") {
    script.in_test = false;
    script.computes_next = false;
    return;
  }
  const bool computes = !word.quoted && is_arithmetic_operator(word.literal);
  const bool names = !word.quoted && word.literal == "-v";
  const bool wrong = (computes && script.template_before) || (script.computes_next && has_template);
  if (wrong) {
    problem(word.begin, false,
            "a template cannot stand beside -eq, -lt and the like in [[ … ]]: the shell computes "
            "there, and would run commands in the value; use [ … ]");
  }
  script.computes_next = computes || names;
  script.template_before = has_template;
}

void ShellScanner::finish_command_word(Script& script, const Word& word) {
  const std::string& literal = word.literal;
  const std::vector<std::string>& words = script.command->words;
  script.after_for = false;
  const bool names_function = words.size() == 2 && words.front() == "function";
  if (!word.quoted && literal == "{" && names_function) {
    script.begin_command();
    return;
  }
  if (script.command_position && !word.quoted) {
    if (goes_before_command(literal)) return;
    if (literal == "case") script.cases.push_back({});
    if (literal == "esac" && !script.cases.empty()) script.cases.pop_back();
    if (literal == "[[") {
      script.in_test = true;
      script.computes_next = false;
      script.template_before = false;
    }
    script.after_for = literal == "for";
  }
  if (!is_assignment(literal)) script.command_position = false;
  script.command->words.push_back(literal);
}

}  // namespace reprise::runbook
