// How a connection reads requests.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

#include "base/text.h"
#include "server/connection_impl.h"

namespace reprise::server {
namespace {

constexpr std::size_t kReadBytes = 4096;
// A refused request's body up to this size is read past, so that the connection can go on.
constexpr std::uint64_t kReadPastBytes = 64 << 10;
// While a reply waits, the socket is read only to notice that the peer has gone; a peer that sends
// more than this ahead is noticed later.
constexpr std::size_t kReadAheadBytes = 16 << 10;
constexpr std::size_t kMaxLingeredBytes = 64 << 20;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

void Connection::advance() {
  if (advancing_) return;
  advancing_ = true;
  while (phase_ == Phase::reading && (has_head_ ? read_body() : read_head())) {
  }
  advancing_ = false;
  if (phase_ == Phase::reading) {
    peer_done_ ? close() : read_more();
  } else if (phase_ == Phase::answering && may_wait_long()) {
    read_more();
  }
}

bool Connection::read_head() {
  // Empty lines before a request are overlooked (RFC 9112, 2.2), however their bytes come.
  while (!in_request_ && input_.view().starts_with("\r\n")) input_.consume(2);
  if (input_.empty() || (!in_request_ && input_.view() == "\r")) return false;
  const std::size_t end = find_header_end(input_.view(), searched_);
  const std::size_t header_bytes = end == 0 ? input_.size() : end;
  if (header_bytes > core_.options.max_request_header_bytes) {
    refuse_long_head();
    return false;
  }
  if (end == 0) {
    searched_ = input_.size();
    if (!in_request_) set_deadline(core_.options.header_timeout);
    in_request_ = true;
    return false;
  }
  in_request_ = true;
  searched_ = 0;
  // A copy: the views in head_ must outlive the moves of input_ while the body comes.
  head_text_ = input_.view().substr(0, end);
  input_.consume(end);
  auto head = read_request_head(head_text_);
  if (const auto* refusal = std::get_if<GateRefusal>(&head)) {
    Response response = error_response({refusal->code, refusal->detail});
    response.http_status = refusal->http_status;
    refuse(std::move(response));
    return false;
  }
  head_ = std::get<RequestHead>(head);
  has_head_ = true;
  begin_request();
  return phase_ == Phase::reading;
}

void Connection::refuse_long_head() {
  const std::uint64_t most = core_.options.max_request_header_bytes;
  if (input_.view().substr(0, most).find('\n') == std::string_view::npos) {
    return refuse(error_response(
        {Errc::target_too_long, fmt::format("the request line is beyond {}", format_bytes(most))}));
  }
  refuse(error_response({Errc::request_header_too_large,
                         fmt::format("the header is beyond {}", format_bytes(most))}));
}

void Connection::begin_request() {
  keep_alive_ = head_.keep_alive;
  auto admitted = admit(core_, head_, visitor_);
  if (auto* refusal = std::get_if<Response>(&admitted)) return hold_back(std::move(*refusal));
  match_ = std::move(std::get<RouteMatch>(admitted));
  route_ = route_index(*match_.route);
  if (head_.chunked) decoder_ = ChunkedDecoder();
  if (head_.expects_continue && head_.has_body() && input_.empty()) send_continue();
}

// A refusal that is known before the body has come.
void Connection::hold_back(Response refusal) {
  const std::uint64_t readable = std::min(kReadPastBytes, core_.options.max_body_bytes);
  const bool can_read_past =
      !head_.chunked && !head_.expects_continue && head_.content_length.value_or(0) <= readable;
  if (!can_read_past) return refuse(std::move(refusal));
  refusal_ = std::move(refusal);
}

void Connection::send_continue() {
  // Everything before has left, so a few bytes always find room.
  ErrorCode error;
  if (socket_.write_some(boost::asio::buffer(kContinue), error) != kContinue.size()) close();
}

bool Connection::read_body() {
  const bool whole = head_.chunked ? read_chunked_body() : read_sized_body();
  if (!whole && phase_ == Phase::reading) set_deadline(core_.options.body_timeout);
  return whole;
}

bool Connection::read_sized_body() {
  const std::uint64_t length = head_.content_length.value_or(0);
  if (input_.size() < length) return false;
  dispatch(input_.view().substr(0, length));
  input_.consume(length);
  return true;
}

bool Connection::read_chunked_body() {
  while (true) {
    const ChunkedDecoder::Step step = decoder_.step(input_.view());
    // What is only announced counts too: there is no use in reading so far.
    if (chunked_body_.size() + step.data.size() + decoder_.chunk_left() >
        core_.options.max_body_bytes) {
      refuse(error_response(
          {Errc::body_too_large,
           fmt::format("the body is beyond {}", format_bytes(core_.options.max_body_bytes))}));
      return false;
    }
    chunked_body_ += step.data;
    input_.consume(step.used);
    switch (step.outcome) {
      case ChunkedDecoder::Outcome::data:
        continue;
      case ChunkedDecoder::Outcome::need_more:
        return false;
      case ChunkedDecoder::Outcome::bad:
        refuse(error_response({Errc::invalid_request, "the body is not in chunks as it says"}));
        return false;
      case ChunkedDecoder::Outcome::done:
        break;
    }
    dispatch(chunked_body_);
    chunked_body_ = std::string();
    return true;
  }
}

void Connection::dispatch(std::string_view body) {
  phase_ = Phase::answering;
  has_head_ = false;
  clear_deadline();
  if (refusal_) return reply(std::move(*std::exchange(refusal_, std::nullopt)));
  if (is_over_budget()) {
    return reply(error_response({Errc::overloaded, "too many large requests at once"}));
  }
  run_handler(body);
}

void Connection::run_handler(std::string_view body) {
  auto query = Query::parse(head_.query);
  if (!query) return reply(error_response(query.error()));
  Request request{head_,
                  body,
                  std::move(match_.queue),
                  std::move(match_.id),
                  std::move(*query),
                  std::move(match_.caller)};
  Status status = check_project_root(core_.api, request);
  if (status) status = match_.route->handler(core_.api, request, Exchange(shared_from_this()));
  if (!status) reply(error_response(status.error()));
}

// Answers something that cannot be read to its end, and closes.
void Connection::refuse(Response response) {
  response.close = true;
  linger_ = true;
  phase_ = Phase::answering;
  has_head_ = false;
  clear_deadline();
  reply(std::move(response));
}

std::size_t Connection::wanted_bytes() const {
  if (!has_head_ || head_.chunked) return kReadBytes;
  const std::uint64_t missing = head_.content_length.value_or(0) - input_.size();
  // At least as much as has come, so that a large body takes few steps; never what is only
  // promised, or a thousand clients could claim all memory with a header each.
  return std::min<std::uint64_t>(missing, std::max(kReadBytes, input_.size()));
}

void Connection::read_more() {
  if (read_pending_ || peer_done_ || phase_ == Phase::closed) return;
  if (phase_ == Phase::answering && input_.size() >= kReadAheadBytes) return;
  const auto space = input_.prepare(wanted_bytes());
  account_memory();
  if (phase_ == Phase::reading && accounted_bytes_ > 0 && is_over_budget()) {
    return refuse(error_response({Errc::overloaded, "too many large requests at once"}));
  }
  read_pending_ = true;
  socket_.async_read_some(boost::asio::buffer(space.data(), space.size()),
                          [self = shared_from_this()](const ErrorCode& error, std::size_t bytes) {
                            self->on_read(error, bytes);
                          });
}

void Connection::on_read(const ErrorCode& error, std::size_t bytes) {
  read_pending_ = false;
  if (phase_ == Phase::closed) return;
  if (!error) {
    input_.commit(bytes);
    return on_input();
  }
  if (error != boost::asio::error::eof) return close();
  peer_done_ = true;
  switch (phase_) {
    case Phase::reading:
      return advance();
    case Phase::answering:
      if (may_wait_long()) close();  // whoever waited is not there any more
      return;
    case Phase::streaming:
    case Phase::lingering:
      return close();
    case Phase::writing:
    case Phase::closed:
      return;
  }
}

void Connection::on_input() {
  switch (phase_) {
    case Phase::reading:
      return advance();
    case Phase::answering:
      if (may_wait_long()) read_more();
      return;
    case Phase::streaming:
    case Phase::lingering:
      lingered_bytes_ += input_.size();
      input_.consume(input_.size());
      return lingered_bytes_ > kMaxLingeredBytes ? close() : read_more();
    case Phase::writing:
    case Phase::closed:
      return;
  }
}

}  // namespace reprise::server
