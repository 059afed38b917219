#include "server/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <future>
#include <utility>

#include "server/io_thread_impl.h"
#include "server/listening_impl.h"
#include "server/server_core.h"

namespace reprise::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause{50};

HostPolicy make_host_policy(const HttpServerOptions& options, const tcp::endpoint& endpoint) {
  if (!options.tokens.empty()) return HostPolicy::any_host();
  std::vector<std::string> names = options.allowed_hosts;
  names.push_back(endpoint_text(endpoint));
  return HostPolicy::only(names);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(std::shared_ptr<ServerCore> core, std::vector<std::shared_ptr<IoThread>> threads,
       tcp::acceptor acceptor)
      : core_(std::move(core)),
        threads_(std::move(threads)),
        acceptor_(std::move(acceptor)),
        address_(endpoint_text(acceptor_.local_endpoint())),
        pause_(threads_.front()->context()) {}

  ~Impl() { stop(Duration::zero()); }

  void start() {
    accept();
    for (const auto& thread : threads_) thread->start();
  }

  const std::string& address() const { return address_; }
  ServerCore& core() { return *core_; }

  void stop(Duration grace) {
    if (std::exchange(stopped_, true)) return;
    core_->stats.shutting_down = true;
    stop_accepting();
    if (core_->options.workers != nullptr) core_->options.workers->stop_waiting();
    for (const auto& thread : threads_) thread->begin_drain();
    core_->gate.wait_until_empty(grace);
    for (const auto& thread : threads_) thread->stop();
  }

 private:
  // The first io thread accepts for all of them, in turn.
  void accept() {
    const std::shared_ptr<IoThread>& target = threads_[next_thread_++ % threads_.size()];
    acceptor_.async_accept(target->context(),
                           [this, target](const ErrorCode& error, tcp::socket socket) {
                             on_accept(error, std::move(socket), target);
                           });
  }

  void on_accept(const ErrorCode& error, tcp::socket socket,
                 const std::shared_ptr<IoThread>& target) {
    if (!acceptor_.is_open()) return;
    if (error) return accept_after_pause();
    const bool within_limit =
        core_->stats.connections.fetch_add(1) < core_->options.max_connections;
    if (!within_limit) {
      core_->stats.connections.fetch_sub(1);
      core_->stats.connections_refused.fetch_add(1);
    }
    asio::dispatch(target->context(), [target, within_limit, taken = std::move(socket)]() mutable {
      target->adopt(std::move(taken), within_limit);
    });
    accept();
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
    asio::post(threads_.front()->context(), [&] {
      ErrorCode ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      closed.set_value();
    });
    closed.get_future().wait();
  }

  const std::shared_ptr<ServerCore> core_;
  const std::vector<std::shared_ptr<IoThread>> threads_;
  tcp::acceptor acceptor_;
  const std::string address_;
  asio::steady_timer pause_;
  std::size_t next_thread_ = 0;  // the first io thread's
  bool stopped_ = false;
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(Broker& broker, HttpServerOptions options) {
  const auto endpoint = resolve_listen_address("listen", options.listen);
  if (!endpoint) return endpoint.error();
  if (options.tokens.empty() && !endpoint->address().is_loopback()) {
    return Error{Errc::invalid_field,
                 fmt::format("listen: {} is not a loopback address, and without tokens anybody who "
                             "reaches it could use the server: give --token-file, or listen on "
                             "127.0.0.1",
                             options.listen)};
  }
  const unsigned thread_count = std::max(options.io_threads, 1U);
  const HttpServerOptions kept = options;
  auto core =
      std::make_shared<ServerCore>(broker, std::move(options), make_host_policy(kept, *endpoint));
  std::vector<std::shared_ptr<IoThread>> threads;
  for (unsigned i = 0; i < thread_count; ++i) threads.push_back(std::make_shared<IoThread>(core));
  auto acceptor = open_acceptor(threads.front()->context(), *endpoint, kept.listen);
  if (!acceptor) return acceptor.error();
  auto impl = std::make_unique<Impl>(core, std::move(threads), std::move(*acceptor));
  impl->start();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

std::string HttpServer::address() const { return impl_->address(); }

std::uint64_t HttpServer::connections() const { return impl_->core().stats.connections.load(); }

void HttpServer::begin_shutdown() { impl_->core().stats.shutting_down = true; }

void HttpServer::stop(Duration grace) { impl_->stop(grace); }

}  // namespace reprise::server
