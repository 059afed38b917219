// Connection: one client, from accept to close. Reads a request, has it answered, writes the reply,
// and only then looks at the next one: replies leave in order and memory stays bounded.
//
// Invariants: at most one read and one write are under way; input_ does not move while a read is;
// a lease whose reply did not leave whole is released; after close() nothing is sent or received.
// Threads: everything on its IoThread's thread, or, once that thread is gone, reply() on the
// broker's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/admission.h"
#include "server/chunked_decoder.h"
#include "server/exchange.h"
#include "server/input_buffer.h"
#include "server/io_thread_impl.h"
#include "server/request_gate.h"
#include "server/response.h"
#include "server/routes.h"

namespace reprise::server {

class Connection final : public ReplyTarget, public std::enable_shared_from_this<Connection> {
 public:
  // Not `within_limit`: it is told that there are too many, and closed.
  Connection(std::shared_ptr<IoThread> io, boost::asio::ip::tcp::socket socket, bool within_limit);
  ~Connection() override;

  void start();
  // Answers what is under way, then closes; see IoThread::begin_drain().
  void drain();
  void close();

  bool is_due(std::chrono::steady_clock::time_point now) const { return now >= deadline_; }
  void on_deadline();

  // ReplyTarget.
  void reply(Response response) override;
  void stream(std::unique_ptr<EventStream> events) override;
  void waits_for(ClaimId claim) override { claim_ = claim; }
  void watch_peer() override { watches_peer_ = true; }
  Mailbox& mailbox() override { return io_->mailbox(); }

 private:
  enum class Phase : std::uint8_t {
    reading,    // a request, or waiting for one
    answering,  // a handler or the broker is at it
    writing,    // the reply
    streaming,  // events, until somebody closes
    lingering,  // all is said; reads and forgets what the peer still sends
    closed,
  };
  using Clock = std::chrono::steady_clock;
  using ErrorCode = boost::system::error_code;

  // Reading. The steps return false when they need more bytes or the phase has changed.
  void advance();
  bool read_head();
  void refuse_long_head();
  bool read_body();
  bool read_sized_body();
  bool read_chunked_body();
  void begin_request();
  void hold_back(Response refusal);
  void send_continue();
  void dispatch(std::string_view body);
  void run_handler(std::string_view body);
  void refuse(Response response);

  void read_more();
  std::size_t wanted_bytes() const;
  void on_read(const ErrorCode& error, std::size_t bytes);
  void on_input();
  bool is_over_budget();

  // Writing.
  bool has_peer_closed();
  bool may_wait_long() const { return claim_ || watches_peer_; }
  void write_output();
  void write_rest();
  void on_write(const ErrorCode& error, std::size_t bytes);
  void finish_output();
  void finish_exchange();
  void end_after_reply();
  std::size_t output_bytes() const { return output_head_.size() + output_body_.size(); }
  void pump_stream();

  void set_deadline(Duration from_now) { deadline_ = Clock::now() + from_now; }
  void clear_deadline() { deadline_ = Clock::time_point::max(); }
  void release(std::vector<LeaseToken>& leases);
  void account_memory();

  const std::shared_ptr<IoThread> io_;
  ServerCore& core_;
  boost::asio::ip::tcp::socket socket_;
  const bool within_limit_;
  Visitor visitor_;

  Phase phase_ = Phase::reading;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool read_pending_ = false;
  bool write_pending_ = false;
  bool peer_done_ = false;  // it has closed its side
  bool advancing_ = false;  // advance() is on the stack: do not enter it again

  // The request.
  InputBuffer input_;
  std::size_t searched_ = 0;  // bytes of input_ known not to end a header
  bool in_request_ = false;   // its first byte has come
  bool has_head_ = false;
  std::string head_text_;  // what head_ points into
  RequestHead head_;
  RouteMatch match_;
  std::size_t route_ = kNoRoute;
  std::optional<Response> refusal_;  // to be sent when the body has been read past
  ChunkedDecoder decoder_;
  std::string chunked_body_;

  // Its reply.
  bool keep_alive_ = true;
  std::optional<ClaimId> claim_;  // waiting at the broker
  bool watches_peer_ = false;     // waiting for something else
  std::string output_head_;
  std::string output_body_;
  std::size_t sent_ = 0;
  std::vector<LeaseToken> output_leases_;
  bool linger_ = false;  // the peer may still be sending what nobody will read
  std::size_t lingered_bytes_ = 0;
  std::unique_ptr<EventStream> stream_;

  std::uint64_t accounted_bytes_ = 0;  // our share of stats.buffered_bytes
};

}  // namespace reprise::server
