// Access tokens: the secrets that let a client in.
// A token is compared in constant time against every known one, so that timing tells neither how
// much of a guess was right nor which token was close. Secrets are never logged or shown; the name
// may be.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace reprise::server {

struct AccessToken {
  std::string name;
  std::string secret;
};

// One token a line: "name:token", or a bare token whose name is then "default". Blank lines and
// lines that begin with '#' are skipped. Names may repeat, so that tokens can be changed one by
// one. The error is Errc::invalid_request and names the line, never its text: an empty or odd
// secret, or no token at all.
Result<std::vector<AccessToken>> parse_access_tokens(std::string_view text);

// The same from a file, which messages name; Errc::io when it cannot be read.
Result<std::vector<AccessToken>> read_access_token_file(const std::string& path);

class AccessTokens {
 public:
  explicit AccessTokens(std::vector<AccessToken> tokens) : tokens_(std::move(tokens)) {}

  bool empty() const { return tokens_.empty(); }
  // The name of the token in an Authorization header's value ("Bearer TOKEN"); nullopt: no such
  // token, or another scheme.
  std::optional<std::string_view> match(std::string_view authorization) const;

 private:
  std::vector<AccessToken> tokens_;
};

}  // namespace reprise::server
