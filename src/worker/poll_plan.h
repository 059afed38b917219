// PollPlan: when one worker lists its external queue. At most one list runs at a time; what asks
// for one meanwhile has another follow. Lists that fail are tried again after longer and longer
// waits. No I/O, no clock: time comes in as an argument. Threads: one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/time.h"

namespace reprise::worker {

// Why the queue is to be listed.
enum class PollReason : std::uint8_t {
  due,    // its time has come
  asked,  // started, woken, refreshed
  freed,  // a run has ended, so that there is room
};

class PollPlan {
 public:
  // Whether to begin a list now. False: one runs; another follows it.
  bool request(PollReason reason);
  // The list and the takes that followed it are over. True: begin another at once.
  bool finished();
  bool running() const { return running_; }
  // Of the list that runs, or ran last.
  PollReason reason() const { return reason_; }

  // What the list said, and so how long to wait for the next. Nothing: until somebody asks.
  std::optional<Duration> listed(bool well, std::optional<Duration> poll);
  // The wait from now on, when the time has come or the interval was changed.
  std::optional<Duration> wait(std::optional<Duration> poll) const;

  // Items that somebody else took first, or whose run has ended: room alone is no reason to take
  // them again, or a list that goes on naming them would keep the worker busy for ever.
  void leave_alone(std::string key) { left_alone_.insert(std::move(key)); }
  bool is_left_alone(const std::string& key) const { return left_alone_.contains(key); }

  void stop();

 private:
  void begin(PollReason reason);

  bool running_ = false;
  PollReason reason_ = PollReason::asked;
  std::optional<PollReason> next_;  // the best reason that came meanwhile
  std::uint32_t failures_ = 0;      // lists in a row
  std::set<std::string> left_alone_;
};

}  // namespace reprise::worker
