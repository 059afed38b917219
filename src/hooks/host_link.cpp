#include "hooks/host_link.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/pidfd.h"

namespace reprise::hooks {

Result<std::unique_ptr<HostLink>> HostLink::make(NurseryLink::Report started) {
  void* page = mmap(nullptr, kProgressPageBytes, PROT_READ, MAP_SHARED, started.page.get(), 0);
  if (page == MAP_FAILED) {
    return Error{Errc::io, std::string("the page of a hook host: ") + std::strerror(errno)};
  }
  fcntl(started.socket.get(), F_SETFL, O_NONBLOCK);
  return std::unique_ptr<HostLink>(new HostLink(started.what.pid, std::move(started.socket),
                                                std::move(started.pidfd),
                                                static_cast<const HostProgress*>(page)));
}

HostLink::HostLink(pid_t pid, UniqueFd socket, UniqueFd pidfd, const HostProgress* progress)
    : pid_(pid), socket_(std::move(socket)), pidfd_(std::move(pidfd)), progress_(progress) {}

HostLink::~HostLink() {
  kill();
  munmap(const_cast<HostProgress*>(progress_), kProgressPageBytes);
}

void HostLink::kill() { pidfd_send_signal(pidfd_.get(), SIGKILL, nullptr, 0); }

void HostLink::flush() {
  while (sent_ < unsent_.size()) {
    const ssize_t written =
        ::send(socket_.get(), unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) break;
    sent_ += static_cast<std::size_t>(written);
  }
  unsent_.clear();
  sent_ = 0;
}

HostLink::Received HostLink::receive() {
  std::array<char, 64 * 1024> chunk;
  const ssize_t got = recv(socket_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0) {
    return errno == EAGAIN || errno == EINTR ? Received::nothing : Received::end;
  }
  if (got == 0) return Received::end;
  received_.erase(0, consumed_);
  consumed_ = 0;
  received_.append(chunk.data(), static_cast<std::size_t>(got));
  return Received::some;
}

Result<std::optional<FromHost>> HostLink::next_message() {
  std::string_view rest = std::string_view(received_).substr(consumed_);
  auto frame = take_frame(rest, kMaxFrameFromHostBytes);
  if (!frame) return frame.error();
  if (!*frame) return std::optional<FromHost>{};
  auto message = decode_from_host(**frame);
  consumed_ = received_.size() - rest.size();
  if (!message) return message.error();
  return std::optional<FromHost>(std::move(*message));
}

Nanoseconds HostLink::cpu_time() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return Nanoseconds::zero();
  }
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

std::optional<RunningCall> HostLink::running_call() const {
  const std::int64_t started = progress_->call_started.load(std::memory_order_acquire);
  const std::uint64_t position = progress_->position.load(std::memory_order_acquire);
  // Another call may have begun in between.
  if (started <= 0 || progress_->call_started.load(std::memory_order_acquire) != started) {
    return std::nullopt;
  }
  return RunningCall{.batch = static_cast<std::uint32_t>(position >> 32),
                     .place = static_cast<std::uint32_t>(position),
                     .started = Steady(Nanoseconds(started))};
}

}  // namespace reprise::hooks
