// LoadError: why a run ends without a figure. A benchmark that goes on after a refused or wrong
// reply measures something else than it says, so nothing here is retried.
#pragma once

#include <stdexcept>

namespace reprise::bench {

struct LoadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace reprise::bench
