#include "server/beanstalk_server.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <future>
#include <utility>

#include "server/beanstalk_io_impl.h"
#include "server/listening_impl.h"

namespace reprise::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{50};

}  // namespace

class BeanstalkServer::Impl {
 public:
  Impl(std::shared_ptr<BeanstalkIo> io, tcp::acceptor acceptor)
      : io_(std::move(io)),
        acceptor_(std::move(acceptor)),
        address_(endpoint_text(acceptor_.local_endpoint())),
        pause_(io_->context()) {}

  ~Impl() { stop(Duration::zero()); }

  void start() {
    accept();
    io_->start();
  }

  const std::string& address() const { return address_; }
  BeanstalkStats stats() const { return io_->stats(); }

  void stop(Duration grace) {
    if (std::exchange(stopped_, true)) return;
    stop_accepting();
    io_->begin_drain();
    io_->gate().wait_until_empty(grace);
    io_->stop();
  }

 private:
  void accept() {
    acceptor_.async_accept([this](const ErrorCode& error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) return accept_after_pause();
      io_->adopt(std::move(socket));
      accept();
    });
  }

  // Out of file descriptors, most likely: trying again at once would only burn the processor.
  void accept_after_pause() {
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const ErrorCode& error) {
      if (!error && acceptor_.is_open()) accept();
    });
  }

  void stop_accepting() {
    std::promise<void> closed;
    asio::post(io_->context(), [&] {
      ErrorCode ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      closed.set_value();
    });
    closed.get_future().wait();
  }

  const std::shared_ptr<BeanstalkIo> io_;
  tcp::acceptor acceptor_;
  const std::string address_;
  asio::steady_timer pause_;
  bool stopped_ = false;
};

Result<std::unique_ptr<BeanstalkServer>> BeanstalkServer::start(Broker& broker,
                                                                BeanstalkServerOptions options) {
  const auto endpoint = resolve_listen_address("beanstalk", options.listen);
  if (!endpoint) return endpoint.error();
  if (!options.remote && !endpoint->address().is_loopback()) {
    return Error{Errc::invalid_field,
                 fmt::format("beanstalk: {} is not a loopback address, and the protocol knows no "
                             "passwords, so anybody who reaches it could use the server: listen on "
                             "127.0.0.1, or set beanstalk_remote = true where the network is "
                             "trusted",
                             options.listen)};
  }
  const std::string listen = options.listen;
  auto io = std::make_shared<BeanstalkIo>(broker, std::move(options));
  auto acceptor = open_acceptor(io->context(), *endpoint, listen);
  if (!acceptor) return acceptor.error();
  auto impl = std::make_unique<Impl>(std::move(io), std::move(*acceptor));
  impl->start();
  return std::unique_ptr<BeanstalkServer>(new BeanstalkServer(std::move(impl)));
}

BeanstalkServer::BeanstalkServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
BeanstalkServer::~BeanstalkServer() = default;

std::string BeanstalkServer::address() const { return impl_->address(); }

BeanstalkStats BeanstalkServer::stats() const { return impl_->stats(); }

void BeanstalkServer::stop(Duration grace) { impl_->stop(grace); }

}  // namespace reprise::server
