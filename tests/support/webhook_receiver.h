// WebhookReceiver: a small HTTP server on a port of its own that remembers what it is sent and
// answers as it is told.
// Threads: requests are handled on threads of its own; all methods from any thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::test {

struct ReceivedRequest {
  std::string head;  // request line and headers, as they came
  std::string body;
};

class WebhookReceiver {
 public:
  // The whole answer, from its first line; empty: none, the connection stays open.
  using Answer = std::function<std::string(const ReceivedRequest&)>;

  static std::string status(int code, std::string_view more_headers = {}) {
    return "HTTP/1.1 " + std::to_string(code) + " Whatever\r\nContent-Length: 0\r\n" +
           std::string(more_headers) + "\r\n";
  }

  explicit WebhookReceiver(Answer answer = [](const auto&) { return status(204); })
      : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 64);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~WebhookReceiver() { close(); }
  WebhookReceiver(const WebhookReceiver&) = delete;
  WebhookReceiver& operator=(const WebhookReceiver&) = delete;

  int port() const { return port_; }
  std::string url(std::string_view path = "/hook") const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }

  // From now on connections are refused.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(closed_, true)) return;
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (std::thread& thread : threads_) thread.join();
  }

  // Ends the connections that there are, as a restart would; new ones are taken.
  void drop_connections() {
    const std::lock_guard lock(mutex_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }

  void answer_with(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }

  std::vector<ReceivedRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // False: there were fewer after ten seconds.
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(10),
                          [&] { return requests_.size() >= count; });
  }
  std::size_t connections() const {
    const std::lock_guard lock(mutex_);
    return threads_.size();
  }
  std::size_t most_at_once() const {
    const std::lock_guard lock(mutex_);
    return most_at_once_;
  }

 private:
  void accept_all() {
    while (true) {
      const int socket = ::accept(listener_, nullptr, nullptr);
      if (socket < 0) return;
      const std::lock_guard lock(mutex_);
      if (closed_) {
        ::close(socket);
        return;
      }
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string input;
    ReceivedRequest request;
    while (read_request(socket, input, request)) {
      const std::string answer = handle(request);
      ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
      const std::lock_guard lock(mutex_);
      --at_once_;
    }
    const std::lock_guard lock(mutex_);
    sockets_.remove(socket);
    ::close(socket);
  }

  std::string handle(const ReceivedRequest& request) {
    Answer answer;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      most_at_once_ = std::max(most_at_once_, ++at_once_);
      answer = answer_;
    }
    came_.notify_all();
    return answer(request);
  }

  static bool read_more(int socket, std::string& input) {
    char block[16384];
    const ssize_t got = ::recv(socket, block, sizeof(block), 0);
    if (got > 0) input.append(block, static_cast<std::size_t>(got));
    return got > 0;
  }

  static bool read_request(int socket, std::string& input, ReceivedRequest& request) {
    std::size_t end = 0;
    while ((end = input.find("\r\n\r\n")) == input.npos) {
      if (!read_more(socket, input)) return false;
    }
    request.head = input.substr(0, end + 2);
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t length = request.head.find(kLength);
    const std::size_t bytes =
        length == input.npos ? 0 : std::stoul(request.head.substr(length + kLength.size()));
    while (input.size() < end + 4 + bytes) {
      if (!read_more(socket, input)) return false;
    }
    request.body = input.substr(end + 4, bytes);
    input.erase(0, end + 4 + bytes);
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable came_;
  Answer answer_;
  std::vector<ReceivedRequest> requests_;
  std::size_t at_once_ = 0;
  std::size_t most_at_once_ = 0;
  std::list<int> sockets_;
  bool closed_ = false;
  int listener_;
  int port_ = 0;
  std::list<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace reprise::test
