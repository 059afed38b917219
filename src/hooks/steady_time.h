// The clock of the runner: CLOCK_MONOTONIC, which is the one that hosts write into their pages.
#pragma once

#include <chrono>

namespace reprise::hooks {

using Steady = std::chrono::steady_clock::time_point;
using Nanoseconds = std::chrono::nanoseconds;

}  // namespace reprise::hooks
