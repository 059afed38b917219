// BeanstalkIo: the thread of a beanstalk server, its connections and what they share.
// It outlives its connections and their sessions: a broker that answers late still finds it.
// Threads: one of its own waits for input and applies what came. Replies are sent by it, too, or,
// if they are few and it is at rest, by the broker's thread that has committed them: one of the two
// at a time has the turn.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "broker/broker.h"
#include "server/beanstalk_dialogue.h"
#include "server/beanstalk_server.h"
#include "server/beanstalk_stats.h"
#include "server/connection_gate.h"
#include "server/mailbox.h"

namespace reprise::server {

class BeanstalkConnection;

class BeanstalkIo final : public BeanstalkHub, public std::enable_shared_from_this<BeanstalkIo> {
 public:
  BeanstalkIo(Broker& broker, BeanstalkServerOptions options);

  // By the server's owner.
  void start();
  void begin_drain();
  void stop();

  // Any thread.
  ConnectionGate& gate() { return gate_; }
  boost::asio::io_context& context() { return context_; }
  Mailbox& mailbox() { return mailbox_; }
  BeanstalkStats stats() const;

  // By its own thread.
  void adopt(boost::asio::ip::tcp::socket socket);
  // By the broker: replies, with so many bytes to be sent; and that those of a commit are all
  // there.
  void leave_mail(std::size_t bytes, Mailbox::Letter letter);
  void mail_is_complete();

  // To be held by whoever calls what follows, and all of its connections.
  std::unique_lock<std::mutex> turn() { return std::unique_lock(turn_); }
  void forget(const BeanstalkConnection& connection);
  Broker& broker() { return broker_; }
  BeanstalkLimits limits() const;
  // Between two reads nobody needs what is in it.
  std::span<char> read_buffer() { return read_buffer_; }
  // Calls its proceed() when all that has come is looked at, once.
  void wake(std::shared_ptr<BeanstalkConnection> connection);
  // Something was submitted: the broker attends to it when all that has come is.
  void attend_soon();
  // The broker had no room: it is tried again in a moment.
  void try_later(std::shared_ptr<BeanstalkConnection> connection);
  // It wants on_tick() from now on, until it says that it does not.
  void want_ticks();
  // Bodies that are under way, of all connections; beyond the limit nobody is read from.
  void add_bytes_under_way(std::int64_t change);
  bool has_too_many_bytes() const;
  // Bodies that have come in part, of all connections.
  void add_partial_bytes(std::int64_t change) { partial_bytes_ += change; }
  bool has_too_many_partial_bytes() const;

  // BeanstalkHub.
  bool draining() const override { return draining_; }
  void count(BeanstalkVerb verb) override;
  void count_pause(const std::string& tube) override { ++pauses_[tube]; }
  BeanstalkCensus census() const override;
  BeanstalkTubeCensus tube_census(const std::string& tube) const override;

 private:
  std::vector<std::shared_ptr<BeanstalkConnection>> all_connections() const;
  void make_default_tube();
  void learn_earlier_counts();
  void read_mail();
  void let_awake_proceed();
  void submit_again();
  void schedule_tick();
  void tick();

  Broker& broker_;
  const BeanstalkServerOptions options_;
  const std::string id_;
  const Timestamp started_at_;
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  Mailbox mailbox_;
  ConnectionGate gate_;
  boost::asio::steady_timer retry_timer_;
  boost::asio::steady_timer tick_timer_;
  std::thread thread_;
  std::atomic<std::size_t> bytes_left_{0};  // with leave_mail(), since the last mail_is_complete()
  std::mutex turn_;
  // Written by whoever has the turn.
  std::atomic<std::uint64_t> connection_count_{0};
  std::array<std::atomic<std::uint64_t>, kBeanstalkVerbCount> commands_{};
  // Protected by turn_.
  absl::flat_hash_map<const BeanstalkConnection*, std::shared_ptr<BeanstalkConnection>>
      connections_;
  absl::flat_hash_map<std::string, std::uint64_t> pauses_;  // by tube
  std::vector<std::shared_ptr<BeanstalkConnection>> awake_;
  std::vector<std::shared_ptr<BeanstalkConnection>> retrying_;
  std::vector<char> read_buffer_;
  std::uint64_t total_connections_ = 0;
  std::uint64_t earlier_jobs_ = 0;
  std::uint64_t earlier_timeouts_ = 0;
  std::int64_t bytes_under_way_ = 0;
  std::int64_t partial_bytes_ = 0;
  bool draining_ = false;
  bool ticking_ = false;
  bool wakes_soon_ = false;    // let_awake_proceed() will be called
  bool attends_soon_ = false;  // the broker's attend() will be called
};

}  // namespace reprise::server
