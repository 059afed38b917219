// Result<T>: a value or an Error. The one error type of Reprise.
// Error::detail is a sentence for a person: it names the queue, field, key or file, and the fix.
// [[nodiscard]]: an error that nobody looks at is a bug.
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/errc.h"

namespace reprise {

struct Error {
  Errc code{Errc::internal};
  std::string detail;
  std::vector<std::string> matches{};  // Errc::ambiguous_id only: the ids, at most 10

  friend bool operator==(const Error&, const Error&) = default;
};

// Called by Result::value() on an error; our code tests before it reads, so this is a bug's end.
[[noreturn]] void throw_exception_from_error(const Error& error,
                                             const boost::source_location& where);

template <class T>
struct [[nodiscard]] Result : boost::system::result<T, Error> {
  using boost::system::result<T, Error>::result;
};

using Status = Result<void>;

inline Status ok() { return Status{}; }

}  // namespace reprise

// Passes an error of `expr` on to the caller, or goes on.
#define REPRISE_TRY(expr)                                        \
  do {                                                           \
    if (auto reprise_try_result = (expr); !reprise_try_result) { \
      return reprise_try_result.error();                         \
    }                                                            \
  } while (false)
