// ShellScanner: finds the templates of a command and how each of them is quoted, and says what to
// put in their places. It knows bash's words, quotes, here-documents, substitutions, case patterns
// and arithmetic; that is what it takes to tell text from quoted text.
//
// It is careful one way only: where it is not sure, a template is refused or quoted once too often,
// never pasted and never left where the shell computes.
// Threads: none shared.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runbook/reference_table.h"
#include "runbook/shell_words.h"
#include "runbook/template_syntax.h"

namespace reprise::runbook {

// Put `text`, which refers to `variable`, in the place of [begin, end).
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
  std::string variable;
};

struct ScanProblem {
  std::size_t offset = 0;
  bool warning = false;
  std::string message;
};

class ShellScanner {
 public:
  struct Options {
    TemplateScope scope{};
    std::size_t nesting = 0;
    // Another shell will read this: one that may not have the variables must not go on without.
    bool nested_shell = false;
    bool computing = false;  // all of it stands where the shell computes
  };

  // `text` and `references` must outlive the scanner.
  ShellScanner(std::string_view text, Options options, ReferenceTable& references)
      : text_(text), end_(text.size()), options_(options), references_(references) {}

  // False: it is not what a shell could read, as a problem says. One use each.
  bool scan();
  const std::vector<Edit>& edits() const { return edits_; }  // in no order
  const std::vector<ScanProblem>& problems() const { return problems_; }

 private:
  // A template where the shell does not expand anything.
  struct Held {
    std::size_t begin;
    std::size_t end;
    TemplateReference reference;
  };

  struct Word {
    std::size_t begin = 0;
    std::string literal;                        // with marks; cut when it is very long
    bool quoted = false;                        // some of it
    bool in_list = false;                       // of an array
    std::size_t live = std::string_view::npos;  // where a template that the shell expands stands
    std::vector<Held> held;
  };

  struct HereDocument {
    std::string delimiter;
    bool strips_tabs = false;
    bool quoted = false;
    std::size_t offset = 0;
    std::shared_ptr<const CommandWords> command;
  };

  enum class CasePhase { subject, pattern, body };
  struct Case {
    CasePhase phase = CasePhase::subject;
    bool at_start = true;  // of the subject, or of a pattern
  };

  // Of the commands between two brackets.
  struct Script {
    std::shared_ptr<CommandWords> command = std::make_shared<CommandWords>();
    bool command_position = true;
    bool after_for = false;
    bool redirected = false;  // the next word is where to
    std::vector<Case> cases;
    // [[ … ]]
    bool in_test = false;
    bool computes_next = false;
    bool template_before = false;

    void begin_command() {
      command = std::make_shared<CommandWords>();
      command_position = true;
      after_for = false;
      redirected = false;
    }
    bool in_pattern() const { return !cases.empty() && cases.back().phase == CasePhase::pattern; }
  };

  // How what stands in a `${name…word}` of the shell is read.
  enum class BraceWord { like_outside, pattern };

  static constexpr std::size_t kMostNesting = 100;
  // Counts brackets and quotes within each other: a file must not take all of the stack.
  class Nesting {
   public:
    explicit Nesting(ShellScanner& scanner) : scanner_(scanner) {
      if (++scanner_.nesting_ + scanner_.options_.nesting > kMostNesting) {
        scanner_.fail(scanner_.at_, "brackets and quotes are nested too deep");
      }
    }
    ~Nesting() { --scanner_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ShellScanner& scanner_;
  };

  bool at_end() const { return at_ >= end_; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < end_ ? text_[at_ + ahead] : '\0'; }
  bool fail(std::size_t offset, std::string message);
  void problem(std::size_t offset, bool warning, std::string message);

  // shell_scanner.cpp: commands and words.
  void script(bool in_brackets);
  void script_token(Script& script);
  void separator(Script& script);
  void open_bracket(Script& script);
  void redirection(Script& script);
  void word(Script& script);
  void word_parts(Word& word);
  bool word_part(Word& word);
  bool bracket_in_word(Word& word);
  void list_words();
  void pattern_group(Word& word);
  bool subscript(Word& word);
  void finish_word(Script& script, Word& word, bool has_template);
  bool finish_case_word(Script& script, const Word& word);
  void finish_test_word(Script& script, const Word& word, bool has_template);
  void finish_command_word(Script& script, const Word& word);

  // shell_quoting.cpp: quotes, substitutions, arithmetic.
  void single_quotes(Word* word);
  void ansi_quotes(Word* word);
  void double_quotes(Word* word);
  void backticks(bool in_double_quotes);
  void dollar(bool quoted, Word* word);
  void braces(bool quoted, Word* word);
  void expand_here(const TemplateText& found, bool quoted, Word* word);
  void parameter(bool quoted);
  void parameter_word(bool quoted, BraceWord kind);
  void command_substitution();
  void arithmetic(char open, char close, std::size_t depth);

  // shell_held.cpp: here-documents, and what another shell reads.
  void here_delimiter(Script& script, bool strips_tabs);
  void here_documents();
  void here_document(const HereDocument& document);
  void here_text(std::size_t end);
  void hold(std::size_t begin, std::size_t end, std::vector<Held>& held);
  void release(const std::vector<Held>& held, bool in_here_document);
  void leave(const std::vector<Held>& held);
  void scan_code(const Word& word);
  void scan_code(std::size_t begin, std::size_t end, const std::vector<Held>& held);
  bool scan_inside(const std::string& text, const std::vector<std::size_t>& places,
                   bool nested_shell, bool strict);

  std::string_view text_;
  std::size_t end_;
  std::size_t at_ = 0;
  Options options_;
  ReferenceTable& references_;
  std::vector<Edit> edits_;
  std::vector<ScanProblem> problems_;
  std::vector<HereDocument> waiting_;  // for the end of the line
  std::size_t nesting_ = 0;
  std::size_t computing_ = 0;       // brackets of arithmetic around
  std::size_t templates_seen_ = 0;  // of any kind
  bool failed_ = false;
};

}  // namespace reprise::runbook
