// RedisLuaProtocol: a queue as people build it of Redis's own types and scripts, since streams have
// no way back. A hash for each job, with its body and attempts; lists of the ready and of the dead;
// a sorted set of the leases, by their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peers/redis_protocol.h"

namespace reprise::bench::peers {

class RedisLuaProtocol final : public RedisProtocol {
 public:
  explicit RedisLuaProtocol(std::string queue) : RedisProtocol(std::move(queue)) {}

  void greet() override;
  ClaimStyle claim_style() const override { return ClaimStyle::poll; }

  void push(const BodySource& bodies, const Stamp& stamp) override;
  void claim(std::size_t jobs, bool wait) override;
  void ack(std::string_view job) override;
  void release(std::string_view job) override;
  void bury(std::string_view job) override;
  // No more than a thousand: a script stops the whole server.
  void kick(std::uint64_t jobs) override;

 private:
  enum Script : std::size_t { kPush, kClaim, kAck, kRelease, kBury, kKick };

  void on_greeting(const RedisReply& reply) override;
  std::size_t on_jobs(const RedisReply& reply, PeerReplies& replies) override;
  void run(Script script, std::string_view argument, Meaning meaning, std::size_t jobs = 0);

  // By script: its call up to the argument.
  std::vector<std::string> calls_;
};

}  // namespace reprise::bench::peers
