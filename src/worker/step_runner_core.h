// StepRunnerCore: what the thread of a StepRunner does: has a step host, gives it steps, carries
// their input and output, and ends them.
//
// Steps wait here until the step host has the lock, and no more of them are on their way to it than
// its socket takes for certain. A step host that ends takes its steps with it, and another one is
// started, after a pause that grows when they end again and again.
//
// Threads: one owner. Observers are called from here and must not call back into it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "worker/step_host_link.h"
#include "worker/step_link.h"
#include "worker/step_runner.h"

namespace reprise::worker {

class StepRunnerCore {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  // Descriptors are watched in `epoll_fd`; tags below kFirstTag are the caller's.
  static constexpr std::uint64_t kFirstTag = 4;
  // A step begins with `descriptors` as its limit.
  StepRunnerCore(const StepRunnerOptions& options, int epoll_fd, std::uint64_t descriptors);

  void on_event(std::uint64_t tag);
  void when_ready(std::function<void()> ready);
  void start(StepId id, StepSpec spec, std::shared_ptr<StepObserver> observer);
  void stop(StepId id, StopManner manner);
  // Does what is due; to be called after all of these. Returns when it is to be called again.
  Steady advance();

  // Ends all steps, those to come included. Afterwards, until is_idle(), everything as ever.
  void end_all();
  bool is_ending() const { return ending_; }
  bool is_idle() const { return steps_.empty(); }
  // The end of the step host, or of waiting for it and for steps that do not end.
  void close(std::chrono::milliseconds patience);

 private:
  enum class State : std::uint8_t { waiting, asked, taken };
  struct Step {
    std::shared_ptr<StepObserver> observer;
    StepSpec spec;  // while it waits
    std::optional<StepLink> link;
    State state = State::waiting;
    std::uint64_t host = 0;  // its number
    std::optional<Steady> kill_at;
    bool killed = false;
  };
  using Steps = std::unordered_map<StepId, Step>;

  void start_host(Steady now);
  void lose_host(const std::string& why);
  void receive_from_host();
  void on_report(const HostReport& report);
  void ask();
  bool ask_for(StepId id, Step& step);
  void kill_overdue(Steady now);
  void kill(Step& step);
  void on_control(Steps::iterator step);
  void finish(Steps::iterator step, StepEnd end);
  void watch(StepId id, const StepLink& link);
  StepLink::Sink sink_of(const Step& step) const;
  void fail_waiting(const std::string& why);
  void warn(const std::string& text) const;

  const StepRunnerOptions& options_;
  const int epoll_fd_;
  const std::uint64_t descriptors_;
  Steps steps_;
  std::deque<StepId> waiting_;
  std::uint64_t asked_ = 0;  // that the step host has not answered
  std::set<std::pair<Steady, StepId>> overdue_;
  std::vector<std::function<void()>> ready_;
  bool ending_ = false;

  std::unique_ptr<StepHostLink> host_;
  std::uint64_t host_number_ = 0;
  bool host_ready_ = false;
  Steady host_ready_at_{};
  Steady host_not_before_{};
  Steady::duration host_pause_{};
  int hosts_failed_ = 0;    // in a row, before they were ready
  std::string host_error_;  // what the last one said of it
};

}  // namespace reprise::worker
