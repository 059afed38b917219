#include "peers/peer_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

constexpr std::size_t kFirstInputBytes = 256 << 10;

// A greeting's replies are the protocol's own affair.
class NoReplies final : public PeerReplies {
 public:
  void on_pushed() override { refuse(); }
  void on_claimed(std::string_view, std::string_view) override { refuse(); }
  void on_none(std::size_t) override { refuse(); }
  void on_ended() override { refuse(); }
  void on_kicked(std::uint64_t) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw LoadError("a reply nobody asked for"); }
};

}  // namespace

PeerConnection::PeerConnection(const std::string& address, std::size_t index,
                               std::unique_ptr<PeerProtocol> protocol)
    : socket_(connect_tcp(address)),
      index_(index),
      protocol_(std::move(protocol)),
      input_(kFirstInputBytes) {
  greet();
}

void PeerConnection::greet() {
  NoReplies replies;
  protocol_->greet();
  flush();
  while (!protocol_->greeted()) {
    pollfd wanted{.fd = fd(), .events = POLLIN, .revents = 0};
    if (!flushed()) wanted.events |= POLLOUT;
    poll(&wanted, 1, -1);
    if ((wanted.revents & POLLOUT) != 0) flush();
    if ((wanted.revents & ~POLLOUT) != 0) receive(replies);
  }
}

void PeerConnection::join(int epoll) {
  epoll_ = epoll;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd(), &event);
}

void PeerConnection::watch_writable(bool wanted) {
  if (epoll_ < 0 || watching_writable_ == wanted) return;
  watching_writable_ = wanted;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  if (wanted) event.events |= EPOLLOUT;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd(), &event);
}

void PeerConnection::flush() {
  while (!flushed() && send_some()) {
  }
  if (flushed()) {
    protocol_->output().clear();
    sent_bytes_ = 0;
  }
  watch_writable(!flushed());
}

// Returns false when the kernel's buffer is full.
bool PeerConnection::send_some() {
  const std::string& output = protocol_->output();
  const ssize_t sent =
      send(fd(), output.data() + sent_bytes_, output.size() - sent_bytes_, MSG_NOSIGNAL);
  if (sent < 0 && errno == EAGAIN) return false;
  if (sent < 0 && errno != EINTR) throw LoadError(fmt::format("send: {}", std::strerror(errno)));
  sent_bytes_ += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  return true;
}

void PeerConnection::receive(PeerReplies& replies) {
  if (input_bytes_ == input_.size()) input_.resize(input_.size() * 2);
  const ssize_t got = recv(fd(), input_.data() + input_bytes_, input_.size() - input_bytes_, 0);
  if (got == 0) throw LoadError("the server closed a connection");
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    throw LoadError(fmt::format("recv: {}", std::strerror(errno)));
  }
  input_bytes_ += static_cast<std::size_t>(got);
  const std::size_t used = protocol_->read({input_.data(), input_bytes_}, replies);
  input_bytes_ -= used;
  if (input_bytes_ > 0) std::memmove(input_.data(), input_.data() + used, input_bytes_);
}

}  // namespace reprise::bench::peers
