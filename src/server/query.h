// Query: the parameters of a request's target, and percent-decoding.
// Like JsonFields for bodies: a handler takes what it knows, finish() complains about the rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace reprise::server {

// nullopt: a '%' without two hexadecimal digits. With plus_is_space '+' is a space.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

class Query {
 public:
  // `text` without '?'. Errc::invalid_request for a bad escape or text that is not UTF-8.
  static Result<Query> parse(std::string_view text);

  // The first value of a parameter, which is still to be taken.
  std::optional<std::string> peek(std::string_view name) const;
  // The value of a parameter; nullopt when it is absent. Given twice it is an error.
  std::optional<std::string> take(std::string_view name);
  // All values of a parameter that may be repeated.
  std::vector<std::string> take_all(std::string_view name);
  // All parameters "PREFIXname", as (name, value).
  std::vector<std::pair<std::string, std::string>> take_prefixed(std::string_view prefix);
  std::optional<Duration> take_duration(std::string_view name);
  std::optional<std::uint64_t> take_number(std::string_view name, std::uint64_t min,
                                           std::uint64_t max);

  // Sets an error from outside, e.g. for a word that is none of those allowed.
  void fail(std::string_view name, std::string_view problem, Errc code = Errc::invalid_field);

  // The first error; a parameter nobody took counts. Call it last.
  Status finish();

 private:
  struct Parameter {
    std::string name;
    std::string value;
    bool taken = false;
  };
  std::vector<Parameter> parameters_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace reprise::server
