#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace reprise::internal {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "reprise: internal error: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace reprise::internal
