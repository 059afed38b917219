#include "peers/redis_stream_protocol.h"

#include <fmt/format.h>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

constexpr std::string_view kGroup = "workers";

[[noreturn]] void refuse() {
  throw LoadError("a stream of Redis cannot release, bury or kick: use redis-lua");
}

std::string beginning(std::size_t words, std::initializer_list<std::string_view> first) {
  std::string out;
  append_redis_head(out, words);
  for (const std::string_view word : first) append_redis_word(out, word);
  return out;
}

}  // namespace

RedisStreamProtocol::RedisStreamProtocol(std::string queue, std::size_t client)
    : RedisProtocol(std::move(queue)),
      consumer_(fmt::format("c{}", client)),
      add_(beginning(5, {"XADD", this->queue(), "*", "b"})),
      ack_(beginning(4, {"XACK", this->queue(), kGroup})),
      del_(beginning(3, {"XDEL", this->queue()})) {}

void RedisStreamProtocol::greet() {
  greeting({"XGROUP", "CREATE", queue(), kGroup, "0", "MKSTREAM"});
}

void RedisStreamProtocol::push(const BodySource& bodies, const Stamp& stamp) {
  output_ += add_;
  append_redis_length(output_, bodies.body_bytes());
  bodies.append(output_, stamp);
  output_ += "\r\n";
  expect(Meaning::pushed);
}

void RedisStreamProtocol::claim(std::size_t jobs, bool wait) {
  const std::string count = std::to_string(jobs);
  if (wait) {
    static const std::string milliseconds = std::to_string(kClaimWaitSeconds * 1000);
    command(Meaning::jobs,
            {"XREADGROUP", "GROUP", kGroup, consumer_, "COUNT", count, "BLOCK", milliseconds,
             "STREAMS", queue(), ">"},
            jobs);
  } else {
    command(Meaning::jobs,
            {"XREADGROUP", "GROUP", kGroup, consumer_, "COUNT", count, "STREAMS", queue(), ">"},
            jobs);
  }
}

void RedisStreamProtocol::ack(std::string_view job) {
  output_ += ack_;
  append_redis_word(output_, job);
  expect(Meaning::half_ended);
  output_ += del_;
  append_redis_word(output_, job);
  expect(Meaning::ended);
}

void RedisStreamProtocol::release(std::string_view) { refuse(); }
void RedisStreamProtocol::bury(std::string_view) { refuse(); }
void RedisStreamProtocol::kick(std::uint64_t) { refuse(); }

// [[stream, [[id, [field, body]], …]]], or nil.
std::size_t RedisStreamProtocol::on_jobs(const RedisReply& reply, PeerReplies& replies) {
  constexpr std::size_t kFirstJob = 4;
  constexpr std::size_t kPartsOfJob = 5;
  std::size_t jobs = 0;
  for (std::size_t at = kFirstJob; at + kPartsOfJob <= reply.size(); at += kPartsOfJob) {
    replies.on_claimed(reply[at + 1].text, reply[at + 4].text);
    jobs++;
  }
  return jobs;
}

}  // namespace reprise::bench::peers
