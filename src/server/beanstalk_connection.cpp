#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

#include "server/beanstalk_connection_impl.h"
#include "server/beanstalk_io_impl.h"
#include "server/listening_impl.h"

namespace reprise::server {
namespace {

using boost::asio::ip::tcp;
using std::chrono::milliseconds;

// Who does not take its replies is not read from.
constexpr std::size_t kMaxWaitingOutput = 4 << 20;

constexpr std::size_t kKeptOutput = 256 << 10;
// So much that was sent is dropped from the front of what is still to be sent.
constexpr std::size_t kSentKept = 1 << 20;
// Reads in a row, before others have their turn.
constexpr int kReadsInTurn = 4;
// How long a reserve that will not be waited for may take to be answered.
constexpr milliseconds kReserveGrace{200};
// Without anything that the peer acknowledges.
constexpr milliseconds kSendTimeout{120'000};

void set_tcp_option(tcp::socket& socket, int option, int value) {
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, option, &value, sizeof(value));
}

void set_options(tcp::socket& socket) {
  // Each is an improvement only: a socket that refuses one still works.
  boost::system::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  set_tcp_option(socket, TCP_USER_TIMEOUT, static_cast<int>(kSendTimeout.count()));
  // A peer that vanished without a word is noticed, and what it holds is released.
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  set_tcp_option(socket, TCP_KEEPIDLE, 30);
  set_tcp_option(socket, TCP_KEEPINTVL, 10);
}

std::string worker_name(const tcp::socket& socket) {
  boost::system::error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? "beanstalk" : fmt::format("beanstalk {}", endpoint_text(peer));
}

// What is to be sent, about.
std::size_t size_of(const std::vector<session::Reply>& replies) {
  constexpr std::size_t kLineBytes = 32;
  std::size_t size = replies.size() * kLineBytes;
  for (const session::Reply& reply : replies) {
    const auto* reserved = std::get_if<session::Reserved>(&reply);
    if (reserved == nullptr) continue;
    for (const ClaimedJob& job : reserved->jobs) size += kLineBytes + job.record->payload.size();
  }
  return size;
}

// Hands replies over to the connection.
class ReplySink final : public session::Sink {
 public:
  ReplySink(std::shared_ptr<BeanstalkIo> io, std::weak_ptr<BeanstalkConnection> connection)
      : io_(std::move(io)), connection_(std::move(connection)) {}

  void deliver(std::vector<session::Reply> replies) override {
    const std::size_t bytes = size_of(replies);
    io_->leave_mail(bytes, [connection = connection_, replies = std::move(replies)] {
      if (const auto self = connection.lock()) self->take(replies);
    });
  }
  void delivered() override { io_->mail_is_complete(); }

 private:
  const std::shared_ptr<BeanstalkIo> io_;
  const std::weak_ptr<BeanstalkConnection> connection_;
};

}  // namespace

BeanstalkConnection::BeanstalkConnection(std::shared_ptr<BeanstalkIo> io, tcp::socket socket)
    : io_(std::move(io)), socket_(std::move(socket)), dialogue_(*io_, io_->limits()) {}

void BeanstalkConnection::start() {
  set_options(socket_);
  wait_for_input();
}

bool BeanstalkConnection::may_hear() const {
  return !waits_for_broker_ && !dialogue_.is_full() &&
         dialogue_.output().size() - sent_ < kMaxWaitingOutput;
}

bool BeanstalkConnection::may_read() const {
  if (closed_ || peer_done_) return false;
  if (dialogue_.has_quit()) return true;  // only to see the end
  return held_.empty() && may_hear() && !io_->has_too_many_bytes();
}

void BeanstalkConnection::wait_for_input() {
  if (std::exchange(read_pending_, true)) return;
  socket_.async_read_some(boost::asio::buffer(front_),
                          [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
                            const auto turn = self->io_->turn();
                            self->on_input(error, bytes);
                          });
}

void BeanstalkConnection::on_input(const ErrorCode& error, std::size_t bytes) {
  read_pending_ = false;
  if (closed_) return;
  if (error == boost::asio::error::eof) {
    on_peer_done();
    return proceed();
  }
  if (error) return close();
  if (bytes < front_.size()) {
    hear({front_.data(), bytes});
  } else {
    std::ranges::copy(front_, io_->read_buffer().begin());
    bool has_more = read_once(bytes);
    for (int i = 1; i < kReadsInTurn && has_more && may_read(); ++i) has_more = read_once(0);
  }
  proceed();
}

void BeanstalkConnection::hear(std::string_view bytes) {
  // What comes while the broker has no room waits for its turn.
  const bool waits = !may_hear() && !dialogue_.has_quit();
  held_ = waits ? bytes : dialogue_.receive(bytes);
  if (dialogue_.partial_bytes() > io_->read_buffer().size() && io_->has_too_many_partial_bytes()) {
    dialogue_.give_up_body();
  }
  if (!waits) submit();
}

bool BeanstalkConnection::read_once(std::size_t there) {
  const auto buffer = io_->read_buffer();
  const auto room = buffer.subspan(there);
  ErrorCode error;
  const std::size_t bytes = socket_.read_some(boost::asio::buffer(room.data(), room.size()), error);
  if (there + bytes > 0) hear({buffer.data(), there + bytes});
  if (error == boost::asio::error::would_block) return false;
  if (error == boost::asio::error::eof) {
    on_peer_done();
    return false;
  }
  if (error) {
    close();
    return false;
  }
  return bytes == room.size();
}

void BeanstalkConnection::hear_held() {
  if (held_.empty() || !may_hear()) return;
  const auto rest = dialogue_.receive(std::string_view(held_).substr(held_used_));
  held_used_ = held_.size() - rest.size();
  if (rest.empty()) {
    held_ = std::string();
    held_used_ = 0;
  }
  submit();
}

void BeanstalkConnection::on_peer_done() {
  peer_done_ = true;
  last_progress_ = Clock::now();
  end_waits();
}

void BeanstalkConnection::end_waits() {
  if (session_) io_->broker().end_waits(*session_);
}

void BeanstalkConnection::submit() {
  auto& commands = dialogue_.commands();
  waits_for_broker_ = false;
  if (!commands.empty()) {
    if (!session_) {
      SessionOptions options;
      options.worker = worker_name(socket_);
      options.sink = std::make_shared<ReplySink>(io_, weak_from_this());
      session_ = io_->broker().open_session(std::move(options));
    }
    const Status taken = io_->broker().submit(*session_, commands);
    if (taken) {
      commands.clear();
      io_->attend_soon();
    } else if (taken.error().code == Errc::overloaded) {
      waits_for_broker_ = true;
      io_->try_later(shared_from_this());
    } else {
      dialogue_.refuse_commands();
    }
  }
  account();
}

void BeanstalkConnection::submit_again() {
  if (closed_) return;
  submit();
  proceed();
}

void BeanstalkConnection::take(const std::vector<session::Reply>& replies) {
  if (closed_) return;
  last_progress_ = Clock::now();
  for (const session::Reply& reply : replies) dialogue_.take(reply);
  account();
  io_->wake(shared_from_this());
}

void BeanstalkConnection::proceed() {
  if (closed_) return;
  hear_held();
  send();
  if (closed_) return;
  // What was in the way may have been the output.
  if (!held_.empty() && may_hear()) return io_->wake(shared_from_this());
  if (is_ending() && dialogue_.is_answered() && held_.empty() && dialogue_.output().empty())
    return close();
  if (may_read()) {
    wait_for_input();
  } else if (dialogue_.waits_in_reserve()) {
    io_->want_ticks();
  }
  if (abandons_reserves()) io_->want_ticks();
}

void BeanstalkConnection::send() {
  std::string& output = dialogue_.output();
  while (!write_pending_ && sent_ < output.size()) {
    ErrorCode error;
    sent_ += socket_.write_some(boost::asio::buffer(output.data() + sent_, output.size() - sent_),
                                error);
    if (error == boost::asio::error::would_block) {
      wait_for_room();
    } else if (error) {
      return close();
    }
  }
  if (sent_ == output.size()) {
    output.clear();
    sent_ = 0;
    if (output.capacity() > kKeptOutput) output = std::string();
  } else if (sent_ > kSentKept) {
    output.erase(0, std::exchange(sent_, 0));
  }
}

void BeanstalkConnection::wait_for_room() {
  write_pending_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const ErrorCode& error) {
    const auto turn = self->io_->turn();
    self->write_pending_ = false;
    if (error && !self->closed_) return self->close();
    self->proceed();
  });
}

void BeanstalkConnection::account() {
  const auto bytes = closed_ ? 0 : static_cast<std::int64_t>(dialogue_.bytes_under_way());
  const auto partial = closed_ ? 0 : static_cast<std::int64_t>(dialogue_.partial_bytes());
  io_->add_bytes_under_way(bytes - std::exchange(counted_bytes_, bytes));
  io_->add_partial_bytes(partial - std::exchange(counted_partial_bytes_, partial));
}

bool BeanstalkConnection::is_ending() const {
  return peer_done_ || dialogue_.has_quit() || io_->draining();
}

bool BeanstalkConnection::abandons_reserves() const { return peer_done_ || io_->draining(); }

void BeanstalkConnection::drain() {
  last_progress_ = Clock::now();
  proceed();
}

bool BeanstalkConnection::on_tick() {
  if (closed_) return false;
  const bool waits = dialogue_.waits_in_reserve();
  const bool is_watched = read_pending_ || peer_done_;
  if (waits && !is_watched && peer_has_hung_up()) on_peer_done();
  if (waits && abandons_reserves() && Clock::now() - last_progress_ >= kReserveGrace) {
    close();
    return false;
  }
  return abandons_reserves() || (waits && !is_watched);
}

// Also when there is input before the end of the stream.
bool BeanstalkConnection::peer_has_hung_up() {
  pollfd peer{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&peer, 1, 0) == 1;
}

// Closing with unread input resets the connection, and the last replies might be lost with it.
void BeanstalkConnection::read_past_the_rest() {
  const auto buffer = io_->read_buffer();
  ErrorCode error;
  for (int i = 0; i < kReadsInTurn && !error; ++i) {
    socket_.read_some(boost::asio::buffer(buffer.data(), buffer.size()), error);
  }
}

void BeanstalkConnection::close() {
  if (std::exchange(closed_, true)) return;
  if (dialogue_.has_quit()) read_past_the_rest();
  ErrorCode ignored;
  socket_.close(ignored);
  if (session_) io_->broker().close_session(*session_);
  account();
  io_->forget(*this);
}

}  // namespace reprise::server
