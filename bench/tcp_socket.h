// TcpSocket: a file descriptor that closes itself, and the two ways to get one.
// All sockets are non-blocking once connected, with TCP_NODELAY: a request or a reply leaves at
// once.
#pragma once

#include <string>
#include <utility>

namespace reprise::bench {

class TcpSocket {
 public:
  explicit TcpSocket(int fd) : fd_(fd) {}
  ~TcpSocket();
  TcpSocket(TcpSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int fd() const { return fd_; }

 private:
  int fd_;
};

// `address` is "host:port". Throw LoadError.
TcpSocket connect_tcp(const std::string& address);
// Listens on a free port of 127.0.0.1.
TcpSocket listen_tcp();
unsigned port_of(const TcpSocket& listener);

// For sockets from accept().
void make_prompt(int fd);

}  // namespace reprise::bench
