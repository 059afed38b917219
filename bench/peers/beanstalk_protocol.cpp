#include "peers/beanstalk_protocol.h"

#include <fmt/format.h>

#include <charconv>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kReserved = "RESERVED ";
constexpr int kPriority = 1024;
constexpr int kTtrSeconds = 3600;  // longer than any run: a job that comes twice is a mistake

std::uint64_t number_of(std::string_view text, std::string_view line) {
  std::uint64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc{}) throw LoadError(fmt::format("unexpected reply: {}", line));
  return number;
}

}  // namespace

void BeanstalkProtocol::greet() {
  output_ += fmt::format("use {0}\r\nwatch {0}\r\n", tube_);
  greetings_left_ = 2;
  if (tube_ != "default") {
    output_ += "ignore default\r\n";
    greetings_left_ = 3;
  }
}

void BeanstalkProtocol::push(const BodySource& bodies, const Stamp& stamp) {
  if (put_line_.empty()) {
    put_line_ = fmt::format("put {} 0 {} {}\r\n", kPriority, kTtrSeconds, bodies.body_bytes());
  }
  output_ += put_line_;
  bodies.append(output_, stamp);
  output_ += kLineEnd;
}

void BeanstalkProtocol::claim(std::size_t jobs, bool wait) {
  static const std::string waiting = fmt::format("reserve-with-timeout {}\r\n", kClaimWaitSeconds);
  static const std::string at_once = "reserve-with-timeout 0\r\n";
  for (std::size_t i = 0; i < jobs; i++) output_ += wait ? waiting : at_once;
}

void BeanstalkProtocol::ack(std::string_view job) {
  output_ += "delete ";
  output_ += job;
  output_ += kLineEnd;
}

void BeanstalkProtocol::release(std::string_view job) {
  static const std::string rest = fmt::format(" {} 0\r\n", kPriority);
  output_ += "release ";
  output_ += job;
  output_ += rest;
}

void BeanstalkProtocol::bury(std::string_view job) {
  static const std::string rest = fmt::format(" {}\r\n", kPriority);
  output_ += "bury ";
  output_ += job;
  output_ += rest;
}

void BeanstalkProtocol::kick(std::uint64_t jobs) { output_ += fmt::format("kick {}\r\n", jobs); }

std::size_t BeanstalkProtocol::read(std::string_view input, PeerReplies& replies) {
  std::size_t used = 0;
  while (const std::size_t bytes = read_one(input.substr(used), replies)) used += bytes;
  return used;
}

std::size_t BeanstalkProtocol::read_one(std::string_view input, PeerReplies& replies) {
  const std::size_t end = input.find(kLineEnd);
  if (end == std::string_view::npos) return 0;
  const std::string_view line = input.substr(0, end);
  if (line.starts_with(kReserved)) return read_job(line, input, replies);
  if (line.starts_with("INSERTED ")) {
    replies.on_pushed();
  } else if (line == "DELETED" || line == "RELEASED" || line == "BURIED") {
    replies.on_ended();
  } else if (line == "TIMED_OUT") {
    replies.on_none(1);
  } else if (line.starts_with("KICKED ")) {
    replies.on_kicked(number_of(line.substr(7), line));
  } else if (line.starts_with("USING ") || line.starts_with("WATCHING ")) {
    greetings_left_--;
  } else {
    throw LoadError(fmt::format("unexpected reply: {}", line));
  }
  return end + kLineEnd.size();
}

// RESERVED <id> <bytes>
std::size_t BeanstalkProtocol::read_job(std::string_view line, std::string_view input,
                                        PeerReplies& replies) {
  const std::size_t space = line.find(' ', kReserved.size());
  if (space == std::string_view::npos) throw LoadError(fmt::format("unexpected reply: {}", line));
  const std::size_t body_at = line.size() + kLineEnd.size();
  const std::size_t body_bytes = number_of(line.substr(space + 1), line);
  const std::size_t bytes = body_at + body_bytes + kLineEnd.size();
  if (input.size() < bytes) return 0;
  if (input.substr(body_at + body_bytes, kLineEnd.size()) != kLineEnd) {
    throw LoadError("a body without CR LF after it");
  }
  replies.on_claimed(line.substr(kReserved.size(), space - kReserved.size()),
                     input.substr(body_at, body_bytes));
  return bytes;
}

}  // namespace reprise::bench::peers
