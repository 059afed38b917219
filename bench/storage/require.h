// require(): the value of a Result, or the end of the run. A benchmark that goes on after a failed
// commit would measure something else than it says.
#pragma once

#include <utility>

#include "base/result.h"
#include "load_error.h"

namespace reprise::bench {

inline void require(const Status& status) {
  if (!status) throw LoadError(status.error().detail);
}

template <class T>
T require(Result<T> result) {
  if (!result) throw LoadError(result.error().detail);
  return std::move(*result);
}

}  // namespace reprise::bench
