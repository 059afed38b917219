// HttpProbe: a client that sends exactly the bytes it is told and reads replies one by one.
// Every wait ends after ten seconds with a failure instead of a hanging test.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::test {

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class HttpProbe {
 public:
  // `address` is "127.0.0.1:PORT". A small receive buffer makes a slow reader.
  explicit HttpProbe(const std::string& address, int receive_buffer_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    if (receive_buffer_bytes > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(int));
    }
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~HttpProbe() { close(); }
  HttpProbe(const HttpProbe&) = delete;
  HttpProbe& operator=(const HttpProbe&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // Closes with a reset instead of a polite end.
  void abort() {
    const linger hard{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close();
  }
  void finish_sending() { ::shutdown(socket_, SHUT_WR); }

  // False when the peer does not take it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // The next reply; nullopt when the peer closes instead, or says nothing for ten seconds.
  std::optional<HttpReply> reply(bool to_head_request = false) {
    const auto head = read_until("\r\n\r\n");
    if (!head) return std::nullopt;
    HttpReply reply = parse_head(*head);
    const auto length = reply.headers.find("content-length");
    if (to_head_request || length == reply.headers.end()) return reply;
    auto body = read_bytes(std::stoul(length->second));
    if (!body) return std::nullopt;
    reply.body = std::move(*body);
    return reply;
  }
  // Sends and reads one reply; status 0 when there is none.
  HttpReply ask(std::string_view bytes) {
    send(bytes);
    return reply().value_or(HttpReply{});
  }

  // Everything up to and with `end`.
  std::optional<std::string> read_until(std::string_view end) {
    std::size_t found = 0;
    while ((found = input_.find(end)) == std::string::npos) {
      if (!read_some()) return std::nullopt;
    }
    return take(found + end.size());
  }
  std::optional<std::string> read_bytes(std::size_t count) {
    while (input_.size() < count) {
      if (!read_some()) return std::nullopt;
    }
    return take(count);
  }
  // True when the peer has closed and nothing is left to read.
  bool closed_by_peer() { return input_.empty() && !read_some() && closed_; }

 private:
  static HttpReply parse_head(std::string_view head) {
    HttpReply reply;
    reply.status = std::stoi(std::string(head.substr(9, 3)));
    head.remove_prefix(head.find("\r\n") + 2);
    while (head.size() > 2) {
      const std::string_view line = head.substr(0, head.find("\r\n"));
      const std::size_t colon = line.find(": ");
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return std::tolower(c); });
      reply.headers[name] = line.substr(colon + 2);
      head.remove_prefix(line.size() + 2);
    }
    return reply;
  }

  std::string take(std::size_t count) {
    std::string taken = input_.substr(0, count);
    input_.erase(0, count);
    return taken;
  }

  bool read_some() {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, 10'000) <= 0) return false;
    char bytes[16384];
    const ssize_t got = ::recv(socket_, bytes, sizeof(bytes), 0);
    closed_ = got <= 0;
    if (got > 0) input_.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }

  int socket_;
  bool connected_ = false;
  bool closed_ = false;
  std::string input_;
};

// A request with a body, as a well-behaved client sends it.
inline std::string http_request(std::string_view method, std::string_view target,
                                std::string_view body = {}, std::string_view headers = {}) {
  std::string text;
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\n");
  text.append(headers);
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text.append("\r\n").append(body);
}

}  // namespace reprise::test
