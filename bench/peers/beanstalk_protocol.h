// BeanstalkProtocol: put, reserve-with-timeout, delete, release, bury and kick, of any server that
// speaks the beanstalkd protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "peers/peer_protocol.h"

namespace reprise::bench::peers {

class BeanstalkProtocol final : public PeerProtocol {
 public:
  explicit BeanstalkProtocol(std::string tube) : tube_(std::move(tube)) {}

  void greet() override;
  bool greeted() const override { return greetings_left_ == 0; }
  ClaimStyle claim_style() const override { return ClaimStyle::single; }

  void push(const BodySource& bodies, const Stamp& stamp) override;
  void claim(std::size_t jobs, bool wait) override;
  void ack(std::string_view job) override;
  void release(std::string_view job) override;
  void bury(std::string_view job) override;
  void kick(std::uint64_t jobs) override;

  std::size_t read(std::string_view input, PeerReplies& replies) override;

 private:
  // Returns the bytes of the first reply, 0 when it is not whole.
  std::size_t read_one(std::string_view input, PeerReplies& replies);
  std::size_t read_job(std::string_view line, std::string_view input, PeerReplies& replies);

  std::string tube_;
  std::string put_line_;
  int greetings_left_ = 0;
};

}  // namespace reprise::bench::peers
