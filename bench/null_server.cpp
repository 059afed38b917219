// reprise_null_server: answers every push at once and stores nothing. What the load generator
// reaches against it is the ceiling of the machine's loopback and of the generator itself.
//
// One thread, one epoll set. It reads of a request only its Content-Length, and always answers with
// the same results. Prints its port, then serves until it is killed.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "load_error.h"
#include "tcp_socket.h"

namespace reprise::bench {
namespace {

std::string push_reply(std::size_t jobs) {
  std::string body = R"({"results":[)";
  for (std::size_t i = 0; i < jobs; i++) {
    body += fmt::format(R"({}{{"index":{},"status":"pushed","id":"7ZK3M9QAX2B4C"}})",
                        i > 0 ? "," : "", i);
  }
  body += "]}";
  return fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      body.size(), body);
}

class Peer {
 public:
  explicit Peer(int fd) : socket_(fd) {}
  int fd() const { return socket_.fd(); }

  // Returns false when the peer has gone.
  bool serve(const std::string& reply) {
    std::array<char, 256 << 10> chunk;
    const ssize_t got = recv(fd(), chunk.data(), chunk.size(), 0);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    input_.append(chunk.data(), static_cast<std::size_t>(got));
    if (!whole_request()) return true;
    input_.clear();
    return send(fd(), reply.data(), reply.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(reply.size());
  }

 private:
  bool whole_request() const {
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t head_end = input_.find("\r\n\r\n");
    const std::size_t length_at = input_.find(kLength);
    if (head_end == std::string::npos || length_at > head_end) return false;
    const auto length = std::strtoull(input_.c_str() + length_at + kLength.size(), nullptr, 10);
    return input_.size() >= head_end + 4 + length;
  }

  TcpSocket socket_;
  std::string input_;
};

class NullServer {
 public:
  explicit NullServer(std::size_t jobs_per_request)
      : reply_(push_reply(jobs_per_request)),
        listener_(listen_tcp()),
        epoll_(TcpSocket(epoll_create1(EPOLL_CLOEXEC))) {
    add(listener_.fd(), nullptr);
  }

  unsigned port() const { return port_of(listener_); }

  [[noreturn]] void run() {
    std::array<epoll_event, 64> events{};
    while (true) {
      const int count = epoll_wait(epoll_.fd(), events.data(), events.size(), -1);
      for (int i = 0; i < count; i++) {
        auto* peer = static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (peer == nullptr) {
          accept_one();
        } else if (!peer->serve(reply_)) {
          delete peer;
        }
      }
    }
  }

 private:
  void accept_one() {
    const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    make_prompt(fd);
    add(fd, new Peer(fd));
  }

  void add(int fd, Peer* peer) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = peer}};
    epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event);
  }

  std::string reply_;
  TcpSocket listener_;
  TcpSocket epoll_;
};

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  std::size_t jobs_per_request = 1;
  CLI::App app("Answers every push and stores nothing.");
  app.add_option("--jobs-per-request", jobs_per_request, "results in each reply");
  CLI11_PARSE(app, argc, argv);
  reprise::bench::NullServer server(jobs_per_request);
  fmt::print("{}\n", server.port());
  std::fflush(stdout);
  server.run();
}
