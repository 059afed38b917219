// PeerConnection: a socket and the protocol that is spoken over it.
// In an epoll set it asks for EPOLLIN, and for EPOLLOUT while something waits to be sent.
// Threads: one. Nothing here blocks, except the constructor.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "peers/peer_protocol.h"
#include "tcp_socket.h"

namespace reprise::bench::peers {

class PeerConnection {
 public:
  // Connects and greets. `index` is the caller's own number for it.
  PeerConnection(const std::string& address, std::size_t index,
                 std::unique_ptr<PeerProtocol> protocol);

  std::size_t index() const { return index_; }
  PeerProtocol& protocol() { return *protocol_; }

  // The events' data.ptr is this connection, which must not move.
  void join(int epoll);

  // Sends what the protocol has written, as much as the kernel takes.
  void flush();
  // Reads what has come. A connection that the server closed is a LoadError.
  void receive(PeerReplies& replies);

 private:
  int fd() const { return socket_.fd(); }
  bool flushed() const { return sent_bytes_ == protocol_->output().size(); }
  bool send_some();
  void watch_writable(bool wanted);
  void greet();

  TcpSocket socket_;
  std::size_t index_;
  std::unique_ptr<PeerProtocol> protocol_;
  std::size_t sent_bytes_ = 0;  // of the protocol's output
  int epoll_ = -1;
  bool watching_writable_ = false;

  std::vector<char> input_;
  std::size_t input_bytes_ = 0;  // that are there
};

}  // namespace reprise::bench::peers
