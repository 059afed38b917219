#include "hooks/nursery.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <new>

#include "base/pidfd.h"
#include "base/unique_fd.h"

namespace reprise::hooks {
namespace {

constexpr int kHostSocketFd = 3;

// Of a size that nobody can change any more: a page that shrank would end whoever reads it.
UniqueFd make_page() {
  UniqueFd page(memfd_create("hook-progress", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page) return page;
  if (ftruncate(page.get(), kProgressPageBytes) != 0 ||
      fcntl(page.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    page.reset();
  }
  return page;
}

[[noreturn]] void become_host(pid_t nursery, int socket, int page_fd, HostBody body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != nursery) _exit(0);  // it ended before it could be told
  prctl(PR_SET_NAME, "hook-host");
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  void* page =
      mmap(nullptr, kProgressPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, /*offset=*/0);
  if (page == MAP_FAILED || dup2(socket, kHostSocketFd) < 0) _exit(1);
  close_range(kHostSocketFd + 1, ~0U, 0);
  body(kHostSocketFd, *new (page) HostProgress);
  _exit(0);
}

class Nursery {
 public:
  Nursery(int control, HostBody body) : control_(control), body_(body) {}

  int serve();

 private:
  bool take_request();
  void start_host(std::uint32_t host);
  void reap();
  void end_hosts();
  bool report(const NurseryReport& report) { return send(report, nullptr); }
  bool send(const NurseryReport& report, const std::array<int, kFdsOfStarted>* fds);

  const int control_;
  const HostBody body_;
  std::map<pid_t, std::uint32_t> hosts_;
};

bool Nursery::send(const NurseryReport& report, const std::array<int, kFdsOfStarted>* fds) {
  iovec bytes{.iov_base = const_cast<NurseryReport*>(&report), .iov_len = sizeof(report)};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsOfStarted)> ancillary{};
  if (fds != nullptr) {
    message.msg_control = ancillary.data();
    message.msg_controllen = ancillary.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(*fds));
    std::memcpy(CMSG_DATA(header), fds->data(), sizeof(*fds));
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(control_, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

void Nursery::start_host(std::uint32_t host) {
  const auto failed = [&] { report({.news = NurseryNews::failed, .host = host, .detail = errno}); };
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return failed();
  const UniqueFd ours(pair[0]);
  const UniqueFd theirs(pair[1]);
  const UniqueFd page = make_page();
  if (!page) return failed();

  const pid_t nursery = getpid();
  const pid_t child = fork();
  if (child < 0) return failed();
  if (child == 0) become_host(nursery, theirs.get(), page.get(), body_);
  // It is not reaped before this returns, so the number is still its own.
  const UniqueFd pidfd(pidfd_open(child, 0));
  const std::array<int, kFdsOfStarted> fds = {ours.get(), pidfd.get(), page.get()};
  // Whoever is not known to the broker must not live.
  if (!pidfd || !send({.news = NurseryNews::started, .host = host, .pid = child}, &fds)) {
    failed();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return;
  }
  hosts_.emplace(child, host);
}

void Nursery::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = hosts_.find(ended);
    if (found == hosts_.end()) continue;
    report({.news = NurseryNews::ended, .host = found->second, .pid = ended, .detail = status});
    hosts_.erase(found);
  }
}

void Nursery::end_hosts() {
  for (const auto& [pid, host] : hosts_) kill(pid, SIGKILL);
  for (const auto& [pid, host] : hosts_) waitpid(pid, nullptr, 0);
}

// False: nobody asks any more.
bool Nursery::take_request() {
  NurseryRequest request;
  const ssize_t got = recv(control_, &request, sizeof(request), 0);
  if (got < 0) return errno == EINTR;
  if (got != sizeof(request)) return false;
  start_host(request.host);
  return true;
}

int Nursery::serve() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_SETMASK, &children, nullptr);
  const UniqueFd signals(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) return 1;

  std::array<pollfd, 2> watched = {pollfd{.fd = control_, .events = POLLIN},
                                   pollfd{.fd = signals.get(), .events = POLLIN}};
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return 1;
    if (watched[1].revents != 0) {
      signalfd_siginfo seen{};
      while (read(signals.get(), &seen, sizeof(seen)) > 0) {
      }
      reap();
    }
    if (watched[0].revents != 0 && !take_request()) break;
  }
  end_hosts();
  return 0;
}

}  // namespace

int run_nursery(int control_fd, HostBody body) {
  close_range(static_cast<unsigned int>(control_fd) + 1, ~0U, 0);
  // Should the broker have ended before this, the control socket is closed, which ends us as well.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "hook-nursery");
  return Nursery(control_fd, body).serve();
}

}  // namespace reprise::hooks
