// What the step host and the supervisors, single-threaded processes of ours, do alike.
#pragma once

#include <chrono>
#include <initializer_list>

#include "base/unique_fd.h"

namespace reprise::worker {

// For poll() and epoll_wait(): rounded up, so that what is due is due when it returns.
// time_point::max(): -1, for ever.
int milliseconds_until(std::chrono::steady_clock::time_point when);

// What `ps` and `top` show, at most 15 characters. Also in place of the command line, as far as it
// fits: who kills all that is called by the name of the server shall spare those that clean up.
void set_process_name(const char* name);

// But for 0, 1, 2 and these.
void close_descriptors_but(std::initializer_list<int> kept);

// Whoever means to stop the server, from a terminal or as its service manager, signals all of its
// processes: nothing may end these before the server says so. The descriptor tells of `watched`
// and does not block; none with errno: it could not be made.
UniqueFd block_signals(std::initializer_list<int> watched);

}  // namespace reprise::worker
