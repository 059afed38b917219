// CommandContext: what every command that talks to a server has in hand: the flags all of them
// share, a client made from them, and the output. A command returns the exit code it got from here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/namespace_choice.h"
#include "cli/output.h"
#include "client/client.h"

namespace reprise::cli {

struct CommonFlags {
  std::string server = "http://127.0.0.1:7333";
  std::string ns;       // empty: not given
  std::string project;  // the same by another name; at most one of the two is given
  std::string token_file;
  bool json = false;
};

enum class Scope : std::uint8_t {
  one_namespace,  // that of the flags, of the environment or of the project here
  // The namespace plays no part, or only when a flag names one: the project here is not looked at,
  // so that a broken one is in nobody's way.
  whole_server,
};

class CommandContext : public Output {
 public:
  // An error is wrong usage (a url, a token file, a project whose name cannot be read); the message
  // names the flag or the file.
  static Result<CommandContext> make(CommonFlags flags, Scope scope);

  client::Client& client() { return client_; }
  // `ns` is what --namespace or --project said; empty: neither was given.
  const CommonFlags& flags() const { return flags_; }
  // Where this command works; with Scope::whole_server only `ns`, which is that of the flags.
  const NamespaceChoice& place() const { return place_; }
  // What the server is told to let the command in; empty: nothing.
  const std::string& token() const { return token_; }

  int print_json(const client::Reply& reply) const;  // the server's bytes and a newline

  // kExitOk when the server did what was asked; otherwise prints why not and returns the exit code.
  // With `queue`, an unknown queue's message says what was probably meant.
  int report(const Result<client::Reply>& reply, std::string_view queue = {});

 private:
  CommandContext(CommonFlags flags, NamespaceChoice place, client::Client client,
                 std::string token);
  std::string suggestion_for(std::string_view queue);

  CommonFlags flags_;
  NamespaceChoice place_;
  client::Client client_;
  std::string token_;
};

}  // namespace reprise::cli
