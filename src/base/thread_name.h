// name_this_thread: what top, gdb and perf show for it. At most 15 characters are kept.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace reprise {

inline void name_this_thread(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

// For work that can wait: whoever answers a request goes first.
inline void lower_this_thread_priority() {
  constexpr int kNice = 5;
  // On Linux a thread has a nice value of its own. That it may fail costs nothing.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
}

}  // namespace reprise
