// PeerProtocol: one connection's side of a queue's protocol, as bytes. Commands are written to
// output(); replies that have come are read from the input and told to PeerReplies.
//
// No sockets and no time in here. Replies come in the order of their commands, so that any number
// of these may be under way. A reply that is not a success is a LoadError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "peers/body_source.h"

namespace reprise::bench::peers {

class PeerReplies {
 public:
  virtual ~PeerReplies() = default;

  virtual void on_pushed() = 0;
  // Both views are good until this returns; commands may be written meanwhile.
  virtual void on_claimed(std::string_view job, std::string_view body) = 0;
  // So many of the jobs that were asked for will not come.
  virtual void on_none(std::size_t jobs) = 0;
  // One ack, release or bury is done.
  virtual void on_ended() = 0;
  virtual void on_kicked(std::uint64_t jobs) = 0;
};

// What a claim costs, and whether it can wait for a job.
enum class ClaimStyle {
  single,  // a command for each job; one that waits holds up all later commands
  batch,   // one command for many jobs; waiting as above
  poll,    // one command for many jobs, which never waits
};

class PeerProtocol {
 public:
  virtual ~PeerProtocol() = default;

  // What must be said before anything else.
  virtual void greet() = 0;
  virtual bool greeted() const = 0;
  virtual ClaimStyle claim_style() const = 0;

  virtual void push(const BodySource& bodies, const Stamp& stamp) = 0;
  // `wait`: until there is a job, for kClaimWaitSeconds at most. Else what is there now.
  virtual void claim(std::size_t jobs, bool wait) = 0;
  virtual void ack(std::string_view job) = 0;
  virtual void release(std::string_view job) = 0;  // to be claimed again at once
  virtual void bury(std::string_view job) = 0;     // only kick() brings it back
  virtual void kick(std::uint64_t jobs) = 0;       // that many at most

  // Reads the replies that are whole; returns how many bytes they had.
  virtual std::size_t read(std::string_view input, PeerReplies& replies) = 0;

  std::string& output() { return output_; }

 protected:
  static constexpr int kClaimWaitSeconds = 5;

  std::string output_;
};

// "beanstalk", "redis-stream" or "redis-lua"; `client` tells its connections apart.
std::unique_ptr<PeerProtocol> make_protocol(std::string_view name, const std::string& queue,
                                            std::size_t client);

}  // namespace reprise::bench::peers
