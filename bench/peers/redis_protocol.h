// RedisProtocol: what the two ways to make a queue of Redis have in common: commands, and for each
// one under way what its reply means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>

#include "peers/peer_protocol.h"
#include "peers/redis_reply.h"

namespace reprise::bench::peers {

class RedisProtocol : public PeerProtocol {
 public:
  std::size_t read(std::string_view input, PeerReplies& replies) final;
  bool greeted() const final { return greetings_ == 0; }

 protected:
  enum class Meaning { greeting, pushed, jobs, half_ended, ended, kicked };

  explicit RedisProtocol(std::string queue) : queue_(std::move(queue)) {}

  const std::string& queue() const { return queue_; }

  // What the next command is about, to be called once for each.
  void expect(Meaning meaning, std::size_t jobs = 0) { expected_.push_back({meaning, jobs}); }
  void command(Meaning meaning, std::initializer_list<std::string_view> words,
               std::size_t jobs = 0);
  void greeting(std::initializer_list<std::string_view> words);

  virtual void on_greeting(const RedisReply& reply) = 0;
  // Tells of each job of a claim's reply; returns how many there were.
  virtual std::size_t on_jobs(const RedisReply& reply, PeerReplies& replies) = 0;

 private:
  struct Expected {
    Meaning meaning;
    std::size_t jobs;  // of a claim: asked for
  };
  void handle(const Expected& expected, PeerReplies& replies);

  std::string queue_;
  std::deque<Expected> expected_;
  std::size_t greetings_ = 0;  // without a reply yet
  RedisReply reply_;
};

}  // namespace reprise::bench::peers
