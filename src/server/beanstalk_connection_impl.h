// BeanstalkConnection: the socket of one beanstalk client, and the session behind it.
//
// It is not read from while too much of what it sent is under way, while it does not take its
// replies, or while the broker has no room.
// When the peer has said all (quit, or the end of its stream) or the server drains, it closes as
// soon as everything is answered and sent. A reserve that waits is then not waited for, unless it
// was followed by a quit and the peer is still there.
// Threads: whoever has the turn of its BeanstalkIo; once that is gone, none.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/session.h"
#include "server/beanstalk_dialogue.h"

namespace reprise::server {

class BeanstalkIo;

class BeanstalkConnection final : public std::enable_shared_from_this<BeanstalkConnection> {
 public:
  BeanstalkConnection(std::shared_ptr<BeanstalkIo> io, boost::asio::ip::tcp::socket socket);

  void start();
  void close();
  // Its reserves wait for nothing from now on.
  void end_waits();
  // The server drains from now on.
  void drain();
  // What the broker has answered; it is sent by proceed().
  void take(const std::vector<session::Reply>& replies);
  // Sends, reads on, closes: whatever is to be done.
  void proceed();
  // The broker may have room again.
  void submit_again();
  // False: it needs no more of them.
  bool on_tick();

  const BeanstalkDialogue& dialogue() const { return dialogue_; }
  // Whether it is among those that the io lets proceed; the io's.
  bool is_awake = false;

 private:
  using Clock = std::chrono::steady_clock;
  using ErrorCode = boost::system::error_code;

  // More commands can be taken from it.
  bool may_hear() const;
  bool may_read() const;
  void wait_for_input();
  // The beginning of what has come is in front_.
  void on_input(const ErrorCode& error, std::size_t bytes);
  // Behind what is there in the io's buffer already. False: there is nothing more to read now.
  bool read_once(std::size_t there);
  void hear(std::string_view bytes);
  void hear_held();
  void on_peer_done();
  void submit();
  void send();
  void wait_for_room();
  void account();
  bool is_ending() const;
  bool abandons_reserves() const;
  bool peer_has_hung_up();
  void read_past_the_rest();

  const std::shared_ptr<BeanstalkIo> io_;
  boost::asio::ip::tcp::socket socket_;
  BeanstalkDialogue dialogue_;
  // A request of a client that waits for its answers. Asio reads into it when there is input; that
  // there is some it could tell as well, but asks the kernel anew each time.
  std::array<char, 2048> front_;
  std::string held_;                  // read, but more than may be under way
  std::size_t held_used_ = 0;         // of it, by now
  std::optional<SessionId> session_;  // from the first command on
  std::size_t sent_ = 0;              // of dialogue_.output()
  bool read_pending_ = false;
  bool write_pending_ = false;
  bool waits_for_broker_ = false;
  bool peer_done_ = false;
  bool closed_ = false;
  Clock::time_point last_progress_ = Clock::now();
  // What the io counts of this one.
  std::int64_t counted_bytes_ = 0;
  std::int64_t counted_partial_bytes_ = 0;
};

}  // namespace reprise::server
