#include "hooks/nursery_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/helper_process.h"
#include "base/pidfd.h"

namespace reprise::hooks {
namespace {

Error system_error(std::string_view what, int code) {
  return Error{Errc::io, fmt::format("{}: {}", what, std::strerror(code))};
}

}  // namespace

Result<std::unique_ptr<NurseryLink>> NurseryLink::start(const std::string& program) {
  // Lua takes and gives back small blocks all the time: longer lists of free ones are quicker.
  auto started =
      start_helper(program, "hook-host", {"GLIBC_TUNABLES=glibc.malloc.tcache_count=500"});
  if (!started) return started.error();
  return std::unique_ptr<NurseryLink>(new NurseryLink(std::move(started->socket), started->pid));
}

NurseryLink::~NurseryLink() { close(std::chrono::milliseconds(0)); }

void NurseryLink::close(std::chrono::milliseconds patience) {
  if (pid_ == 0) return;
  control_.reset();
  if (patience.count() > 0) {
    const UniqueFd pidfd(pidfd_open(pid_, 0));
    pollfd end{.fd = pidfd.get(), .events = POLLIN};
    if (pidfd) poll(&end, 1, static_cast<int>(patience.count()));
  }
  kill(pid_, SIGKILL);  // not reaped yet, so the number is still its own
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
}

Status NurseryLink::request(std::uint32_t host) {
  const NurseryRequest request{.host = host};
  if (send(control_.get(), &request, sizeof(request), MSG_NOSIGNAL) < 0) {
    return system_error("the nursery of hook hosts takes no requests", errno);
  }
  return ok();
}

Result<std::optional<NurseryLink::Report>> NurseryLink::receive() {
  Report report;
  iovec bytes{.iov_base = &report.what, .iov_len = sizeof(report.what)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsOfStarted)> ancillary{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  const ssize_t got = recvmsg(control_.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::optional<Report>{};
  if (got < 0) return system_error("the nursery of hook hosts", errno);

  std::array<UniqueFd*, kFdsOfStarted> places = {&report.socket, &report.pidfd, &report.page};
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < std::min(count, places.size()); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof(int));
      places[i]->reset(fd);
    }
  }
  if (got != sizeof(report.what)) return Error{Errc::io, "the nursery of hook hosts has ended"};
  const bool complete = report.socket && report.pidfd && report.page;
  if (report.what.news == NurseryNews::started && !complete) {
    // Descriptors are cut off when we have as many as we may.
    report.what.news = NurseryNews::failed;
    report.what.detail = EMFILE;
  }
  return std::optional<Report>(std::move(report));
}

}  // namespace reprise::hooks
