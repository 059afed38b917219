#include "server/chunked_decoder.h"

#include <algorithm>

#include "server/request_gate.h"

namespace reprise::server {
namespace {

// Extensions and trailers mean nothing here; a client has no reason to send many.
constexpr std::size_t kMaxExtraBytes = 8192;
constexpr unsigned kMaxSizeDigits = 15;  // so that no size overflows, nor hides in zeros

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

}  // namespace

ChunkedDecoder::Step ChunkedDecoder::step(std::string_view input) {
  Step step{Outcome::need_more, 0, {}};
  while (step.used < input.size()) {
    if (state_ == State::data) {
      take_data(input, step);
      return step;
    }
    take_byte(input[step.used++]);
    if (state_ == State::bad) step.outcome = Outcome::bad;
    if (state_ == State::done) step.outcome = Outcome::done;
    if (step.outcome != Outcome::need_more) return step;
  }
  return step;
}

void ChunkedDecoder::take_data(std::string_view input, Step& step) {
  const std::size_t bytes = std::min<std::uint64_t>(chunk_left_, input.size() - step.used);
  step.outcome = Outcome::data;
  step.data = input.substr(step.used, bytes);
  step.used += bytes;
  chunk_left_ -= bytes;
  if (chunk_left_ == 0) state_ = State::data_cr;
}

void ChunkedDecoder::take_byte(char c) {
  const auto expect = [&](char wanted, State next) { state_ = c == wanted ? next : State::bad; };
  switch (state_) {
    case State::size_start:
    case State::size:
    case State::extension:
      return take_size_byte(c);
    case State::size_lf:
      return expect('\n', chunk_left_ == 0 ? State::trailer_start : State::data);
    case State::data_cr:
      return expect('\r', State::data_lf);
    case State::data_lf:
      return expect('\n', State::size_start);
    case State::trailer_start:
    case State::trailer_name:
    case State::trailer:
      return take_trailer_byte(c);
    case State::trailer_lf:
      return expect('\n', State::trailer_start);
    case State::end_lf:
      return expect('\n', State::done);
    case State::data:
    case State::done:
    case State::bad:
      state_ = State::bad;
  }
}

void ChunkedDecoder::take_size_byte(char c) {
  if (state_ == State::extension) {
    if (c == '\r') {
      state_ = State::size_lf;
    } else if (is_control(c) || ++extra_bytes_ > kMaxExtraBytes) {
      state_ = State::bad;
    }
    return;
  }
  const int digit = hex_digit(c);
  if (digit >= 0) {
    if (state_ == State::size_start) size_digits_ = 0;
    chunk_left_ = (chunk_left_ << 4) | static_cast<std::uint64_t>(digit);
    state_ = ++size_digits_ <= kMaxSizeDigits ? State::size : State::bad;
    return;
  }
  // No space before ';' either: RFC 9112 lets it pass only for the sake of old senders.
  if (state_ == State::size && c == '\r') {
    state_ = State::size_lf;
  } else if (state_ == State::size && c == ';') {
    state_ = State::extension;
  } else {
    state_ = State::bad;
  }
}

void ChunkedDecoder::take_trailer_byte(char c) {
  if (++extra_bytes_ > kMaxExtraBytes) {
    state_ = State::bad;
  } else if (state_ == State::trailer) {
    if (c == '\r') state_ = State::trailer_lf;
    if (c != '\r' && is_control(c)) state_ = State::bad;
  } else if (c == '\r' && state_ == State::trailer_start) {
    state_ = State::end_lf;
  } else if (c == ':' && state_ == State::trailer_name) {
    state_ = State::trailer;
  } else {
    // A line that is no header field, a request above all, is not read over.
    state_ = is_token_byte(c) ? State::trailer_name : State::bad;
  }
}

}  // namespace reprise::server
