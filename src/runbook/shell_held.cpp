// ShellScanner's here-documents, and the templates that another shell is to expand, or none.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runbook/shell_decode.h"
#include "runbook/shell_scanner.h"

namespace reprise::runbook {
namespace {

// Whether the character at `at` has a backslash before it that counts.
bool is_escaped(std::string_view text, std::size_t at) {
  std::size_t backslashes = 0;
  while (backslashes < at && text[at - 1 - backslashes] == '\\') ++backslashes;
  return backslashes % 2 == 1;
}

}  // namespace

void ShellScanner::here_delimiter(Script& script, bool strips_tabs) {
  HereDocument document{.strips_tabs = strips_tabs, .offset = at_, .command = script.command};
  while (peek() == ' ' || peek() == '\t') ++at_;
  const std::size_t begin = at_;
  const std::size_t seen = templates_seen_;
  Word word{.begin = at_};
  const std::size_t edits = edits_.size();
  word_parts(word);
  if (failed_) return;
  if (at_ == begin) {
    fail(document.offset, "here-document without a delimiter");
    return;
  }
  if (templates_seen_ != seen || !word.held.empty()) {
    edits_.resize(edits);
    problem(begin, false, "a template cannot be the delimiter of a here-document");
  }
  document.quoted = word.quoted;
  document.delimiter = decode_word(text_, begin, at_).text;
  waiting_.push_back(std::move(document));
}

// `at_` is at the beginning of a line.
void ShellScanner::here_documents() {
  for (const HereDocument& document : std::exchange(waiting_, {})) {
    if (!failed_) here_document(document);
  }
}

void ShellScanner::here_document(const HereDocument& document) {
  const std::size_t begin = at_;
  bool continued = false;  // the line before ends with a backslash that joins them
  for (std::size_t line = at_; line < end_;) {
    const std::size_t line_end = std::min(text_.find('\n', line), end_);
    auto content = text_.substr(line, line_end - line);
    if (document.strips_tabs) {
      content.remove_prefix(std::min(content.find_first_not_of('\t'), content.size()));
    }
    if (!continued && content == document.delimiter) {
      const bool is_code = reads_code(document.command->words);
      const std::size_t seen = templates_seen_;
      if (document.quoted) {
        std::vector<Held> held;
        hold(begin, line, held);
        is_code ? scan_code(begin, line, held) : release(held, true);
      } else {
        here_text(line);
        if (is_code && templates_seen_ != seen) {
          problem(begin, true,
                  fmt::format("'{}' gets values as a part of its commands and would run what is in "
                              "them; quote the delimiter: <<'{}'",
                              document.command->words.front(), document.delimiter));
        }
      }
      if (!failed_) at_ = std::min(line_end + 1, end_);
      return;
    }
    continued = !document.quoted && is_escaped(text_, line_end) && line_end > line;
    line = line_end + 1;
  }
  fail(document.offset, fmt::format("here-document '{}' is not ended", document.delimiter));
}

// What the shell expands in a here-document. Nothing in it reaches beyond `end`.
void ShellScanner::here_text(std::size_t end) {
  const std::size_t outer = std::exchange(end_, end);
  while (!at_end() && !failed_) {
    if (peek() == '\\') {
      at_ = std::min(at_ + 2, end_);
    } else if (peek() == '$') {
      dollar(true, nullptr);
    } else if (peek() == '`') {
      backticks(false);
    } else {
      ++at_;
    }
  }
  end_ = outer;
  if (failed_) at_ = end_;
}

// Notes the templates of a text that the shell leaves alone.
void ShellScanner::hold(std::size_t begin, std::size_t end, std::vector<Held>& held) {
  const auto text = text_.substr(0, end);
  for (std::size_t at = text.find("${", begin); at != std::string_view::npos;) {
    std::size_t next = at + 2;
    if (!is_escaped(text, at)) {
      TemplateText found = read_template(text, at, options_.scope);
      const bool ours = found.kind == TemplateText::Kind::ours;
      if (ours || found.kind == TemplateText::Kind::wrong) {
        ++templates_seen_;
        next = found.end;
      }
      if (ours) held.push_back({at, found.end, std::move(found.reference)});
      // Other languages have templates as well; only what looks like a slip is told.
      const bool slip = found.kind == TemplateText::Kind::unknown_root && found.has_suggestion;
      if (slip || found.kind == TemplateText::Kind::wrong) problem(at, slip, found.problem);
    }
    at = text.find("${", next);
  }
}

// No shell will read them: the reference's name is all that is seen.
void ShellScanner::release(const std::vector<Held>& held, bool in_here_document) {
  for (const Held& one : held) {
    const std::string name = template_name(one.reference);
    if (computing_ > 0) {
      problem(one.begin, false, fmt::format("'{}' cannot stand where the shell computes", name));
      continue;
    }
    problem(one.begin, true,
            in_here_document
                ? fmt::format("'{}' is not expanded here: the here-document's delimiter is quoted",
                              name)
                : fmt::format("'{}' is not expanded in single quotes; end them before it, or hand "
                              "it over as an argument",
                              name));
    const std::string& variable = references_.variable_for(one.reference);
    edits_.push_back({one.begin, one.end, fmt::format("${{{}}}", variable), variable});
  }
}

// Templates in a word that another shell reads: it is scanned as that shell will read it.
void ShellScanner::scan_code(const Word& word) {
  const Decoded code = decode_word(text_, word.begin, at_);
  if (!scan_inside(code.text, code.places, true, false)) leave(word.held);
}

void ShellScanner::scan_code(std::size_t begin, std::size_t end, const std::vector<Held>& held) {
  Decoded code;
  for (std::size_t at = begin; at < end; ++at) code.add(text_[at], at);
  code.places.push_back(end);
  if (!scan_inside(code.text, code.places, true, false)) leave(held);
}

// The other shell's quotes cannot be told: references as they are.
void ShellScanner::leave(const std::vector<Held>& held) {
  for (const Held& one : held) {
    const std::string& variable = references_.variable_for(one.reference);
    edits_.push_back({one.begin, one.end, fmt::format("${{{}?}}", variable), variable});
  }
}

// False: it cannot be read. Then nothing of it is kept, and its problems are told if `strict`.
bool ShellScanner::scan_inside(const std::string& text, const std::vector<std::size_t>& places,
                               bool nested_shell, bool strict) {
  ShellScanner inner(text,
                     {.scope = options_.scope,
                      .nesting = options_.nesting + nesting_ + 1,
                      .nested_shell = nested_shell,
                      .computing = computing_ > 0},
                     references_);
  const bool fine = inner.scan();
  if (fine || strict) {
    for (const ScanProblem& one : inner.problems()) {
      problem(places[std::min(one.offset, places.size() - 1)], one.warning, one.message);
    }
  }
  if (!fine) return false;
  templates_seen_ += inner.templates_seen_;
  for (const Edit& edit : inner.edits()) {
    // The first may have had a backslash; quotes may not have come between the others.
    const std::size_t last = edit.end - 1;
    if (places[last] - places[edit.begin + 1] != last - (edit.begin + 1)) {
      problem(places[edit.begin], false,
              "a template must stand in one piece, without quotes in it");
      continue;
    }
    edits_.push_back({places[edit.begin], places[last] + 1, edit.text, edit.variable});
  }
  return true;
}

}  // namespace reprise::runbook
