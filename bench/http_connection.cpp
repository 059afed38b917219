#include "http_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "load_error.h"

namespace reprise::bench {
namespace {

constexpr std::size_t kFirstInputBytes = 16 << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kLengthName = "\r\ncontent-length:";

std::size_t find_ignoring_case(std::string_view text, std::string_view lower) {
  for (std::size_t at = text.find("\r\n"); at != std::string_view::npos;
       at = text.find("\r\n", at + 1)) {
    if (text.size() - at >= lower.size() &&
        strncasecmp(text.data() + at, lower.data(), lower.size()) == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

template <class Number>
Number parse_number(std::string_view text, std::string_view what) {
  const std::size_t from = std::min(text.find_first_not_of(' '), text.size());
  Number number{};
  const auto result = std::from_chars(text.data() + from, text.data() + text.size(), number);
  if (result.ec != std::errc{}) throw LoadError(fmt::format("a reply without {}", what));
  return number;
}

}  // namespace

HttpConnection::HttpConnection(const std::string& address, std::size_t index)
    : socket_(connect_tcp(address)), index_(index) {
  input_.resize(kFirstInputBytes);
}

void HttpConnection::start(TimePoint now) {
  busy_ = true;
  sent_at_ = now;
  flushed_bytes_ = 0;
  received_bytes_ = 0;
  head_bytes_ = 0;
  flush();
}

void HttpConnection::flush() {
  while (!flushed() && send_some()) {
  }
  watch_writable(!flushed());
}

// Returns false when the kernel's buffer is full.
bool HttpConnection::send_some() {
  const ssize_t sent =
      send(fd(), request_.data() + flushed_bytes_, request_.size() - flushed_bytes_, MSG_NOSIGNAL);
  if (sent < 0 && errno == EAGAIN) return false;
  if (sent < 0 && errno != EINTR) throw LoadError(fmt::format("send: {}", std::strerror(errno)));
  flushed_bytes_ += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  return true;
}

void HttpConnection::join(int epoll) {
  epoll_ = epoll;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd(), &event);
}

void HttpConnection::watch_writable(bool wanted) {
  if (epoll_ < 0 || watching_writable_ == wanted) return;
  watching_writable_ = wanted;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  if (wanted) event.events |= EPOLLOUT;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd(), &event);
}

std::optional<HttpReply> HttpConnection::receive() {
  read_some();
  if (head_bytes_ == 0) parse_head();
  if (head_bytes_ == 0 || received_bytes_ < reply_bytes_) return std::nullopt;
  if (!busy_ || received_bytes_ > reply_bytes_) throw LoadError("a reply nobody asked for");
  busy_ = false;
  return HttpReply{status_,
                   std::string_view(input_).substr(head_bytes_, reply_bytes_ - head_bytes_)};
}

void HttpConnection::read_some() {
  if (received_bytes_ == input_.size()) input_.resize(input_.size() * 2);
  const ssize_t got =
      recv(fd(), input_.data() + received_bytes_, input_.size() - received_bytes_, 0);
  if (got == 0) throw LoadError("the server closed a connection");
  if (got > 0) {
    received_bytes_ += static_cast<std::size_t>(got);
  } else if (errno != EAGAIN && errno != EINTR) {
    throw LoadError(fmt::format("recv: {}", std::strerror(errno)));
  }
}

void HttpConnection::parse_head() {
  const std::string_view text(input_.data(), received_bytes_);
  const std::size_t end = text.find(kHeadEnd);
  if (end == std::string_view::npos) return;
  if (!text.starts_with("HTTP/1.1 ")) throw LoadError("a reply that is not HTTP/1.1");
  const std::string_view head = text.substr(0, end);
  const std::size_t length_at = find_ignoring_case(head, kLengthName);
  if (length_at == std::string_view::npos) throw LoadError("a reply without Content-Length");
  status_ = parse_number<int>(head.substr(9), "a status");
  head_bytes_ = end + kHeadEnd.size();
  reply_bytes_ = head_bytes_ +
                 parse_number<std::size_t>(head.substr(length_at + kLengthName.size()), "a length");
  if (reply_bytes_ > input_.size()) input_.resize(reply_bytes_);
}

HttpReply HttpConnection::exchange() {
  start(Clock::now());
  while (true) {
    pollfd wanted{.fd = fd(), .events = POLLIN, .revents = 0};
    if (!flushed()) wanted.events |= POLLOUT;
    poll(&wanted, 1, -1);
    if ((wanted.revents & POLLOUT) != 0) flush();
    if ((wanted.revents & ~POLLOUT) == 0) continue;
    if (const auto reply = receive()) return *reply;
  }
}

}  // namespace reprise::bench
