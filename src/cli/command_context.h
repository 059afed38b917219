// CommandContext: what every command that talks to a server has in hand: the flags all of them
// share, a client made from them, and one way to print results and errors (docs/cli.md, "Output"
// and "Errors"). A command returns the exit code it got from here.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/terminal.h"
#include "client/client.h"

namespace reprise::cli {

struct CommonFlags {
  std::string server = "http://127.0.0.1:7333";
  std::string ns;  // empty: not given
  std::string token_file;
  bool json = false;
};

// An error as people and machines read it; codes are those of docs/api.md.
struct Problem {
  std::string code;
  std::string message;
};
Problem problem_from(const Error& error);
Problem problem_from(client::JsonView error_object);
// {"code":…,"message":…}
std::string to_json(const Problem& problem);

class CommandContext {
 public:
  // Errc::invalid_field: the flags are wrong (a url, a token file); the message names the flag.
  static Result<CommandContext> make(const CommonFlags& flags);

  client::Client& client() { return client_; }
  const CommonFlags& flags() const { return flags_; }
  const Terminal& terminal() const { return terminal_; }
  bool json() const { return flags_.json; }

  // To stdout, as it is: the caller has escaped what came from outside.
  void print(std::string_view text) const;
  int print_json(const client::Reply& reply) const;  // the server's bytes and a newline
  // To stderr, one line.
  void note(std::string_view text) const;

  // kExitOk when the server did what was asked; otherwise prints why not and returns the exit code.
  // With `queue`, an unknown queue's message says what was probably meant.
  int report(const Result<client::Reply>& reply, std::string_view queue = {});
  int fail(const Error& error) const;
  // An error on stderr. `subject` ("line 3") stands before the message.
  void print_problem(const Problem& problem, std::string_view subject = {}) const;

  // An id as it is shown: its first characters to people, whole to a pipe.
  std::string shown_id(std::string_view id) const;

 private:
  CommandContext(CommonFlags flags, client::Client client);
  std::string suggestion_for(std::string_view queue);

  CommonFlags flags_;
  client::Client client_;
  Terminal terminal_;
};

}  // namespace reprise::cli
