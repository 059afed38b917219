// The life of a connection: start, deadlines, drain, close. connection_input.cpp reads requests,
// connection_output.cpp writes replies.
#include <utility>

#include "server/connection_impl.h"

namespace reprise::server {
namespace {

Peer peer_of(const boost::asio::ip::tcp::socket& socket) {
  namespace ip = boost::asio::ip;
  boost::system::error_code ignored;  // a peer that has gone already will not ask for anything
  const ip::address address = socket.remote_endpoint(ignored).address();
  const ip::address_v6 wide =
      address.is_v4() ? ip::make_address_v6(ip::v4_mapped, address.to_v4()) : address.to_v6();
  return server::peer_of(wide.to_bytes());
}

}  // namespace

Connection::Connection(std::shared_ptr<IoThread> io, boost::asio::ip::tcp::socket socket,
                       bool within_limit)
    : io_(std::move(io)),
      core_(io_->core()),
      socket_(std::move(socket)),
      within_limit_(within_limit) {
  core_.gate.enter();
  visitor_.peer = peer_of(socket_);
}

Connection::~Connection() = default;

void Connection::start() {
  if (!within_limit_) {
    return refuse(error_response({Errc::too_many_connections, "the server has no more room"}));
  }
  set_deadline(core_.options.idle_timeout);
  read_more();
}

void Connection::on_deadline() {
  switch (phase_) {
    case Phase::reading:
      // A client that has said nothing is just gone; one in mid-sentence is told.
      if (!in_request_) return close();
      return refuse(
          error_response({Errc::request_timeout, "the request did not arrive whole in time"}));
    case Phase::streaming:
      if (write_pending_) return close();
      output_body_ = ": keep-alive\n\n";
      return pump_stream();
    case Phase::writing:
    case Phase::lingering:
      return close();
    case Phase::answering:
    case Phase::closed:
      return clear_deadline();
  }
}

void Connection::drain() {
  switch (phase_) {
    case Phase::reading:
      if (!in_request_) close();
      return;
    case Phase::answering:
      if (claim_) core_.broker.cancel_claim(*claim_);
      return;
    case Phase::writing:
      keep_alive_ = false;
      return;
    case Phase::streaming:
    case Phase::lingering:
      return close();
    case Phase::closed:
      return;
  }
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  clear_deadline();
  if (claim_) core_.broker.cancel_claim(*claim_);
  release(output_leases_);  // a reply that has left whole has none any more
  stream_.reset();
  ErrorCode ignored;
  socket_.close(ignored);
  core_.stats.buffered_bytes.fetch_sub(std::exchange(accounted_bytes_, 0));
  if (within_limit_) core_.stats.connections.fetch_sub(1);
  core_.gate.leave();
  io_->forget(*this);  // may be the end of *this
}

void Connection::release(std::vector<LeaseToken>& leases) {
  if (leases.empty()) return;
  std::vector<ReleaseItem> items;
  items.reserve(leases.size());
  for (const LeaseToken& lease : leases) {
    items.push_back({.token = lease, .undelivered = true});
  }
  leases.clear();
  // A lease that is not released here expires: there is nothing to do about an error.
  core_.broker.release(std::move(items), [](const Result<ItemResults<Released>>&) {});
}

void Connection::account_memory() {
  constexpr std::size_t kLarge = 32 << 10;
  const auto large = [](std::size_t bytes) { return bytes > kLarge ? bytes : 0; };
  const std::uint64_t bytes =
      large(input_.capacity()) + large(chunked_body_.capacity()) + large(output_body_.capacity());
  if (bytes == accounted_bytes_) return;
  core_.stats.buffered_bytes.fetch_add(bytes - accounted_bytes_);  // wraps around to subtract
  accounted_bytes_ = bytes;
}

bool Connection::is_over_budget() {
  return core_.stats.buffered_bytes.load(std::memory_order_relaxed) >
         core_.options.max_buffered_bytes;
}

}  // namespace reprise::server
