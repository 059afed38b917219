// How a connection writes replies and event streams.
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "server/connection_impl.h"

namespace reprise::server {
namespace {

constexpr Duration kLingerTime = std::chrono::seconds(5);
constexpr std::size_t kKeptInputBytes = 32 << 10;
constexpr std::string_view kEventStreamType = "text/event-stream";

// What is left of two pieces after the first `sent` bytes.
std::array<boost::asio::const_buffer, 2> rest_of(const std::string& head, const std::string& body,
                                                 std::size_t sent) {
  const std::size_t of_head = std::min(sent, head.size());
  return {boost::asio::buffer(head) + of_head, boost::asio::buffer(body) + (sent - of_head)};
}

}  // namespace

void Connection::reply(Response response) {
  claim_.reset();
  watches_peer_ = false;
  if (phase_ != Phase::answering) return release(response.leases);
  output_leases_ = std::move(response.leases);
  if (!output_leases_.empty() && (peer_done_ || has_peer_closed())) return close();

  core_.stats.count_request(route_, response.http_status);
  keep_alive_ = keep_alive_ && !response.close && !io_->draining();
  append_response_head(
      output_head_, response,
      {.date = io_->http_date(), .keep_alive = keep_alive_, .http_1_0 = head_.http_1_0});
  if (head_.method != "HEAD") output_body_ = std::move(response.body);
  write_output();
}

// Writing to a socket whose peer has closed succeeds the first time, so look before.
bool Connection::has_peer_closed() {
  char byte = 0;
  const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Connection::write_output() {
  phase_ = Phase::writing;
  write_rest();
}

// Tries at once, which nearly always does it, and waits for the socket only if that leaves a rest.
void Connection::write_rest() {
  while (sent_ < output_bytes()) {
    const auto rest = rest_of(output_head_, output_body_, sent_);
    ErrorCode error;
    const std::size_t bytes = socket_.write_some(rest, error);
    if (error == boost::asio::error::would_block) {
      account_memory();
      set_deadline(core_.options.write_timeout);
      write_pending_ = true;
      return socket_.async_write_some(
          rest, [self = shared_from_this()](const ErrorCode& failure, std::size_t written) {
            self->on_write(failure, written);
          });
    }
    if (error) return close();
    sent_ += bytes;
  }
  finish_output();
}

void Connection::on_write(const ErrorCode& error, std::size_t bytes) {
  write_pending_ = false;
  if (phase_ == Phase::closed) return;
  if (error) return close();
  sent_ += bytes;
  write_rest();
  if (phase_ == Phase::streaming && !write_pending_) pump_stream();
}

void Connection::finish_output() {
  output_leases_.clear();
  output_head_.clear();
  output_body_ = std::string();
  sent_ = 0;
  account_memory();
  if (phase_ == Phase::writing) finish_exchange();
}

void Connection::finish_exchange() {
  if (!keep_alive_) return end_after_reply();
  phase_ = Phase::reading;
  in_request_ = false;
  head_ = RequestHead();
  route_ = kNoRoute;
  if (io_->draining()) return close();
  set_deadline(core_.options.idle_timeout);
  if (input_.empty() && !read_pending_ && input_.capacity() > kKeptInputBytes) {
    input_.reset();
    account_memory();
  }
  advance();
}

void Connection::end_after_reply() {
  const bool unread = linger_ || !input_.empty();
  if (!unread || peer_done_ || io_->draining()) return close();
  // Closing with unread input resets the connection, and the reply might be lost with it.
  phase_ = Phase::lingering;
  ErrorCode ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  set_deadline(kLingerTime);
  if (!read_pending_) input_.reset();
  read_more();
}

void Connection::stream(std::unique_ptr<EventStream> events) {
  if (head_.method == "HEAD") {
    Response response;
    response.content_type = kEventStreamType;
    response.close = true;
    return reply(std::move(response));
  }
  core_.stats.count_request(route_, 200);
  phase_ = Phase::streaming;
  stream_ = std::move(events);
  stream_->start(core_.broker.events(), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->mailbox().post([self] { self->pump_stream(); });
  });
  append_stream_head(output_head_, kEventStreamType, io_->http_date());
  pump_stream();
  read_more();
}

void Connection::pump_stream() {
  while (phase_ == Phase::streaming && !write_pending_) {
    if (output_bytes() == 0) output_body_ = stream_->next_text();
    if (output_bytes() == 0) return set_deadline(core_.options.event_keep_alive);
    write_rest();
  }
}

}  // namespace reprise::server
