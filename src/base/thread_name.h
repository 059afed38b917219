// name_this_thread: what top, gdb and perf show for it. At most 15 characters are kept.
#pragma once

#include <pthread.h>

#include <string>
#include <string_view>

namespace reprise {

inline void name_this_thread(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

}  // namespace reprise
