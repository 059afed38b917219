// Output: the one way in which commands print results, notes and errors (docs/cli.md, "Output" and
// "Errors").
#pragma once

#include <string>
#include <string_view>

#include "base/json_view.h"
#include "base/result.h"
#include "cli/terminal.h"

namespace reprise::cli {

// An error as people and machines read it; codes are those of docs/api.md.
struct Problem {
  std::string code;
  std::string message;
};
Problem problem_from(const Error& error);
Problem problem_from(JsonView error_object);
// {"code":…,"message":…}
std::string to_json(const Problem& problem);

class Output {
 public:
  Output(bool json, Terminal terminal) : json_(json), terminal_(terminal) {}

  const Terminal& terminal() const { return terminal_; }
  bool json() const { return json_; }

  // To stdout, as it is: the caller has escaped what came from outside.
  void print(std::string_view text) const;
  // To stderr, one line.
  void note(std::string_view text) const;

  // Prints the error, with the ids that an ambiguous one fits, and returns the exit code.
  int fail(const Error& error) const;
  // An error on stderr. `subject` ("line 3") stands before the message. Further lines of a message
  // about a runbook are printed below it, indented.
  void print_problem(const Problem& problem, std::string_view subject = {}) const;

  // An id as it is shown: its first characters to people, whole to a pipe.
  std::string shown_id(std::string_view id) const;

 private:
  bool json_;
  Terminal terminal_;
};

}  // namespace reprise::cli
