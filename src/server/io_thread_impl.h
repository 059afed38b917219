// IoThread: one thread with its event loop and the connections that live on it.
// It outlives its connections: each of them holds it.
// Threads: the methods under "its own thread" from there only; the others from the server's owner.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "server/mailbox.h"
#include "server/server_core.h"

namespace reprise::server {

class Connection;

class IoThread : public std::enable_shared_from_this<IoThread> {
 public:
  explicit IoThread(std::shared_ptr<ServerCore> core);

  void start();
  // No new requests: idle connections and streams close, waiting claims end, replies under way are
  // the last of their connections.
  void begin_drain();
  // Closes what is still open and ends the thread. Letters that come later run where they are
  // posted.
  void stop();

  boost::asio::io_context& context() { return context_; }
  Mailbox& mailbox() { return mailbox_; }
  ServerCore& core() { return *core_; }

  // Its own thread.
  void adopt(boost::asio::ip::tcp::socket socket, bool within_limit);
  void forget(const Connection& connection);
  bool draining() const { return draining_; }
  // The value of the Date header, correct to half a second.
  const std::string& http_date() const { return http_date_; }

 private:
  void tick();
  void drain_connections();
  void close_connections();
  // Timeouts are looked after here, for all connections at once: a timer for each would cost every
  // request two operations on a heap.
  void schedule_tick();
  std::chrono::steady_clock::duration tick_interval() const;

  const std::shared_ptr<ServerCore> core_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  Mailbox mailbox_;
  boost::asio::steady_timer tick_timer_;
  std::string http_date_;
  bool draining_ = false;
  absl::flat_hash_map<const Connection*, std::shared_ptr<Connection>> connections_;
  std::thread thread_;
};

}  // namespace reprise::server
