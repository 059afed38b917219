#include "tcp_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "load_error.h"

namespace reprise::bench {
namespace {

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

AddressList resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) throw LoadError("--addr wants host:port, not " + address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(),
                                &hints, &list);
  if (error != 0) throw LoadError(fmt::format("{}: {}", address, gai_strerror(error)));
  return AddressList(list);
}

}  // namespace

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) close(fd_);
}

void make_prompt(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

TcpSocket connect_tcp(const std::string& address) {
  const AddressList list = resolve(address);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    TcpSocket socket(::socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol));
    if (socket.fd() < 0 || connect(socket.fd(), at->ai_addr, at->ai_addrlen) != 0) continue;
    make_prompt(socket.fd());
    return socket;
  }
  throw LoadError(fmt::format("cannot connect to {}: {}", address, std::strerror(errno)));
}

TcpSocket listen_tcp() {
  TcpSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.fd(), SOMAXCONN) != 0) {
    throw LoadError(fmt::format("cannot listen: {}", std::strerror(errno)));
  }
  return socket;
}

unsigned port_of(const TcpSocket& listener) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

}  // namespace reprise::bench
