// HttpConnection: one keep-alive connection to the server, with at most one request under way.
//
// It reads of a reply what it must: the status and Content-Length. A reply without a length, bytes
// after a reply, and a connection closed by the server are LoadErrors.
// In an epoll set it asks for EPOLLIN, and for EPOLLOUT while a part of a request waits to be sent.
// Threads: one. Nothing here blocks, except exchange().
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "clock.h"
#include "tcp_socket.h"

namespace reprise::bench {

struct HttpReply {
  int status{};
  std::string_view body;  // until the connection's next call of receive()
};

class HttpConnection {
 public:
  HttpConnection(const std::string& address, std::size_t index);

  // The events' data.ptr is this connection, which must not move.
  void join(int epoll);

  std::size_t index() const { return index_; }  // the caller's own number for it

  bool busy() const { return busy_; }
  TimePoint sent_at() const { return sent_at_; }

  // The next request: the caller writes it here, then calls start(). Not while busy.
  std::string& request() { return request_; }
  // `now` is when the request counts as sent. Sends what the kernel takes; the rest goes by
  // flush().
  void start(TimePoint now);
  // To be called when the socket is writable.
  void flush();

  // Reads what has come; a reply when it is whole, and the connection is then free again.
  std::optional<HttpReply> receive();

  // Sends the request and waits for its reply.
  HttpReply exchange();

 private:
  int fd() const { return socket_.fd(); }
  bool flushed() const { return flushed_bytes_ == request_.size(); }
  bool send_some();
  void watch_writable(bool wanted);
  void read_some();
  void parse_head();

  TcpSocket socket_;
  std::size_t index_;
  int epoll_ = -1;
  bool watching_writable_ = false;
  bool busy_ = false;
  TimePoint sent_at_{};

  std::string request_;
  std::size_t flushed_bytes_ = 0;

  std::string input_;  // its size is the room; received_bytes_ of it are filled
  std::size_t received_bytes_ = 0;
  std::size_t head_bytes_ = 0;   // 0: the head is not complete yet
  std::size_t reply_bytes_ = 0;  // head and body
  int status_ = 0;
};

}  // namespace reprise::bench
