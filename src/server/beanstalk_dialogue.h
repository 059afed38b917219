// BeanstalkDialogue: what one beanstalk client says and is told, without its socket. Bytes become
// commands of a session, replies of the session become bytes.
//
// Everything that comes in one piece becomes as few commands as possible: puts to the same tube,
// equal reserves, deletes, releases, buries and touches that follow each other are one command.
// What needs no broker is answered here, at its place among the replies: each command that is under
// way, and each such answer behind one, has its entry in expected_.
//
// Invariants: expected_ holds what has not been answered, in order; its first entry is never an
// answer of our own; the entries of commands() are the last ones that are not.
// Threads: one at a time.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "broker/session.h"
#include "server/beanstalk_parser.h"
#include "server/beanstalk_stats.h"

namespace reprise::server {

inline constexpr std::string_view kDefaultTube = "default";

// What a dialogue needs of the server that it is a part of.
class BeanstalkHub {
 public:
  virtual ~BeanstalkHub() = default;
  virtual bool draining() const = 0;  // puts are refused
  virtual void count(BeanstalkVerb verb) = 0;
  virtual void count_pause(const std::string& tube) = 0;
  virtual BeanstalkCensus census() const = 0;
  virtual BeanstalkTubeCensus tube_census(const std::string& tube) const = 0;
};

class BeanstalkDialogue {
 public:
  using Tubes = std::shared_ptr<const std::vector<std::string>>;

  BeanstalkDialogue(BeanstalkHub& hub, BeanstalkLimits limits);

  // What the client sent; after a quit it is ignored. Hears as much as may be under way, and gives
  // back the rest, to be said again when is_full() does not hold any more.
  std::string_view receive(std::string_view bytes);
  bool is_full() const;
  // To be submitted, and cleared then.
  std::vector<session::Command>& commands() { return commands_; }
  // Answers what is in commands(), because the broker takes nothing any more, and hears no more.
  void refuse_commands();
  void take(const session::Reply& reply);

  // To be sent.
  std::string& output() { return output_; }
  const std::string& output() const { return output_; }

  bool has_quit() const { return has_quit_; }
  bool is_answered() const { return expected_.empty(); }
  bool waits_in_reserve() const;
  std::uint64_t requests_under_way() const { return requests_under_way_; }
  std::uint64_t bytes_under_way() const { return bytes_under_way_; }  // of bodies
  std::size_t partial_bytes() const { return parser_.partial_bytes(); }
  void give_up_body() { parser_.give_up_body(); }

  // For statistics.
  bool is_producer() const { return is_producer_; }
  bool is_worker() const { return is_worker_; }
  const std::string& used() const { return used_; }
  const std::vector<std::string>& watched() const { return *watched_; }
  bool waits_for(const std::string& tube) const;

 private:
  enum class Kind : std::uint8_t {
    own,  // `text` is the answer
    use,  // `text` is the answer when all is well; `tube`
    put,
    reserve,
    reserve_job,
    settle,
    pause,  // `tube`
    fail,
    kick,
    peek,
    stats_job,
    stats_tube,  // `tube`
    list_tubes,
    stats,
  };
  static bool may_bring_body(Kind kind) {
    return kind == Kind::reserve || kind == Kind::reserve_job || kind == Kind::peek;
  }
  struct Expected {
    Kind kind{};
    std::uint64_t requests = 1;  // that are not answered
    std::uint64_t bytes = 0;     // of the bodies of all
    std::string text{};
    std::string tube{};
    Tubes tubes{};                 // of a reserve
    BeanstalkTubeCensus census{};  // of stats_tube: who used and watched it when it was asked for
  };

  void handle(BeanstalkRequest& request);
  void ask(BeanstalkRequest& request);
  void put(NewJob job);
  void reserve(std::optional<Duration> wait);
  void use(std::string_view tube);
  void watch(std::string_view tube);
  void ignore(std::string_view tube);
  void use_queue(std::string tube, std::string answer);
  void find_next(session::Which which);
  void answer_here(std::string_view text);

  // A command of its own.
  void add(session::Command command, Expected expected);
  // The last command, if it is a Command that the next request can become a part of.
  template <class Command>
  Command* mergeable();
  void count_merged(std::uint64_t bytes = 0);
  template <class Command, class Item>
  void settle(std::vector<Item> Command::*items, Item item);

  void take_reply(const session::Say& reply);
  void take_reply(const session::QueueReady& reply);
  void take_reply(const session::PutDone& reply);
  void take_reply(const session::Reserved& reply);
  void take_reply(const session::NotReserved& reply);
  void take_reply(const session::Settled& reply);
  void take_reply(const session::FailDone& reply);
  void take_reply(const session::Kicked& reply);
  void take_reply(const session::Found& reply);
  void take_reply(const session::QueueFound& reply);
  void take_reply(const session::AllQueues& reply);
  // So many requests of the first entry have been answered.
  void answered(std::uint64_t requests);
  void pop_expected();
  void send_own_answers();

  BeanstalkHub& hub_;
  BeanstalkParser parser_;
  BeanstalkRequest request_;  // kept, so that nothing is built anew for each
  std::string used_{kDefaultTube};
  Tubes watched_;
  // Tubes that were made, or found to be there, for this client.
  absl::flat_hash_set<std::string> made_;
  std::vector<session::Command> commands_;
  bool last_is_open_ = false;  // commands_.back() is also the last of expected_
  std::deque<Expected> expected_;
  std::uint64_t requests_under_way_ = 0;
  std::uint64_t bodies_under_way_ = 0;  // of those requests, the ones that may bring one
  std::uint64_t bytes_under_way_ = 0;
  std::string output_;
  bool has_quit_ = false;
  bool is_producer_ = false;
  bool is_worker_ = false;
};

}  // namespace reprise::server
