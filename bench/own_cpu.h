// The processor time of this process, so that a report can tell its own share from that of others.
#pragma once

#include <sys/resource.h>

namespace reprise::bench {

inline double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// User and system time so far.
inline double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace reprise::bench
