#include "spool/queue_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

namespace reprise::spool {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How soon an interrupt is seen that came between the question and the wait.
constexpr milliseconds kSlice{200};

bool is_arrival(const inotify_event& event, std::string_view name) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) return true;
  return !name.starts_with('.') && name.ends_with(".json");
}

}  // namespace

Result<QueueWatch> QueueWatch::start(const SpoolFiles& files) {
  const std::string queue = files.directory() / "queue";
  UniqueFd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  // A file comes by its rename, by a link, or written under its own name by somebody in a hurry.
  if (!fd || inotify_add_watch(fd.get(), queue.c_str(),
                               IN_MOVED_TO | IN_CREATE | IN_CLOSE_WRITE | IN_ONLYDIR) < 0) {
    return Error{Errc::io, fmt::format("cannot watch {}: {}", queue, std::strerror(errno))};
  }
  return QueueWatch(std::move(fd));
}

bool QueueWatch::wait(Duration longest, const Pauses& pauses) {
  const auto end = steady_clock::now() + longest;
  while (!pauses.interrupted()) {
    if (take_arrivals()) return true;
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left <= milliseconds::zero()) return false;
    pollfd readable{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, static_cast<int>(std::min(left, kSlice).count()));
  }
  return false;
}

bool QueueWatch::take_arrivals() {
  bool arrived = false;
  alignas(inotify_event) std::array<char, 16 << 10> block;
  while (true) {
    const ssize_t bytes = read(fd_.get(), block.data(), block.size());
    if (bytes <= 0) return arrived;
    for (const char* at = block.data(); at < block.data() + bytes;) {
      inotify_event event;
      std::memcpy(&event, at, sizeof(event));
      // The name is padded with zeros.
      const char* const name = at + sizeof(event);
      arrived = arrived || is_arrival(event, {name, strnlen(name, event.len)});
      at = name + event.len;
    }
  }
}

}  // namespace reprise::spool
