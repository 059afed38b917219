// REPRISE_CHECK: an assertion that stays on in release builds. Only for what our own bug can
// break; never for what a peer, a disk or a script can cause.
#pragma once

namespace reprise::internal {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define REPRISE_CHECK(condition) \
  ((condition) ? void(0) : ::reprise::internal::check_failed(#condition, __FILE__, __LINE__))
