// Violation: a promise was broken; what() says which and how.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace reprise::sim {

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool kept, const std::string& broken) {
  if (!kept) throw Violation(broken);
}

}  // namespace reprise::sim
