#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "base/thread_name.h"
#include "server/connection_impl.h"
#include "server/io_thread_impl.h"

namespace reprise::server {
namespace {

// Connections beyond the limit stay for a moment, to be told so; but not any number of them.
constexpr std::size_t kMaxRefusedAtOnce = 64;

void set_tcp_option(boost::asio::ip::tcp::socket& socket, int option, int value) {
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof(value));
}

void set_options(boost::asio::ip::tcp::socket& socket, Duration write_timeout) {
  // Each is an improvement only: a socket that refuses one still works.
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  // A reply in the kernel's buffer has left as far as we can see; the kernel knows whether the peer
  // takes it, and ends the connection when it does not.
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(write_timeout).count();
  set_tcp_option(socket, TCP_USER_TIMEOUT, static_cast<int>(milliseconds));
  // A peer that vanished without a word is noticed while its claim waits.
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  set_tcp_option(socket, TCP_KEEPIDLE, 30);
  set_tcp_option(socket, TCP_KEEPINTVL, 10);
}

}  // namespace

IoThread::IoThread(std::shared_ptr<ServerCore> core)
    : core_(std::move(core)),
      keep_running_(context_.get_executor()),
      mailbox_([this] { boost::asio::post(context_, [this] { mailbox_.drain(); }); }),
      tick_timer_(context_) {}

void IoThread::start() {
  tick();
  thread_ = std::thread([this] {
    name_this_thread("io");
    context_.run();
  });
}

void IoThread::begin_drain() {
  boost::asio::post(context_, [this] { drain_connections(); });
}

void IoThread::stop() {
  boost::asio::post(context_, [this] {
    draining_ = true;
    close_connections();
    tick_timer_.cancel();
    keep_running_.reset();
  });
  thread_.join();
  mailbox_.close();
}

void IoThread::adopt(boost::asio::ip::tcp::socket socket, bool within_limit) {
  set_options(socket, core_->options.write_timeout);
  const bool too_many_refused =
      connections_.size() >= core_->options.max_connections + kMaxRefusedAtOnce;
  if (draining_ || (!within_limit && too_many_refused)) {
    if (within_limit) core_->stats.connections.fetch_sub(1);
    return;  // the socket closes itself
  }
  auto connection =
      std::make_shared<Connection>(shared_from_this(), std::move(socket), within_limit);
  connections_.emplace(connection.get(), connection);
  connection->start();
}

void IoThread::forget(const Connection& connection) { connections_.erase(&connection); }

void IoThread::drain_connections() {
  draining_ = true;
  // A copy: connections that close leave the map.
  std::vector<std::shared_ptr<Connection>> all;
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  for (const auto& connection : all) connection->drain();
}

void IoThread::close_connections() {
  while (!connections_.empty()) {
    const std::shared_ptr<Connection> connection = connections_.begin()->second;
    connection->close();
  }
}

void IoThread::tick() {
  const auto now = std::chrono::floor<std::chrono::seconds>(core_->broker.now());
  http_date_ = format_http_date(now.time_since_epoch().count());
  const auto steady_now = std::chrono::steady_clock::now();
  std::vector<std::shared_ptr<Connection>> due;
  for (const auto& [key, connection] : connections_) {
    if (connection->is_due(steady_now)) due.push_back(connection);
  }
  for (const auto& connection : due) connection->on_deadline();
  schedule_tick();
}

void IoThread::schedule_tick() {
  tick_timer_.expires_after(tick_interval());
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && keep_running_.owns_work()) tick();
  });
}

std::chrono::steady_clock::duration IoThread::tick_interval() const {
  using std::chrono::milliseconds;
  const HttpServerOptions& options = core_->options;
  const Duration shortest =
      std::min({options.header_timeout, options.body_timeout, options.idle_timeout,
                options.write_timeout, options.event_keep_alive});
  return std::clamp<Duration>(shortest / 4, milliseconds(5), milliseconds(500));
}

}  // namespace reprise::server
