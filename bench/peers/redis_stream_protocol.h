// RedisStreamProtocol: a stream with one consumer group. XADD; XREADGROUP COUNT n; XACK and XDEL.
// Streams have no way to give a job back or to bury it: these are LoadErrors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "peers/redis_protocol.h"

namespace reprise::bench::peers {

class RedisStreamProtocol final : public RedisProtocol {
 public:
  RedisStreamProtocol(std::string queue, std::size_t client);

  void greet() override;
  ClaimStyle claim_style() const override { return ClaimStyle::batch; }

  void push(const BodySource& bodies, const Stamp& stamp) override;
  void claim(std::size_t jobs, bool wait) override;
  void ack(std::string_view job) override;
  void release(std::string_view job) override;
  void bury(std::string_view job) override;
  void kick(std::uint64_t jobs) override;

 private:
  void on_greeting(const RedisReply&) override {}
  std::size_t on_jobs(const RedisReply& reply, PeerReplies& replies) override;

  std::string consumer_;
  // The unchanging beginnings of commands.
  std::string add_;
  std::string ack_;
  std::string del_;
};

}  // namespace reprise::bench::peers
