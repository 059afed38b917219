// Loop: one thread's work in order, with timers that have names. Everything that the worker service
// owns is touched from its loop alone.
//
// A timer is known by its name: setting it again moves it, cancelling one that is not there is no
// error. Tests use a loop that they turn by hand, with a clock of their own.
#pragma once

#include <absl/functional/any_invocable.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/time.h"
#include "worker/timer_table.h"

namespace reprise::worker {

using Task = absl::AnyInvocable<void()>;

class Loop {
 public:
  virtual ~Loop() = default;
  // From any thread.
  virtual void post(Task task) = 0;

  // The rest from the loop's own thread only.
  virtual Timestamp now() const = 0;
  virtual void set_timer(std::string name, Timestamp due, Task task) = 0;
  virtual void cancel_timer(std::string_view name) = 0;
  // Timers whose names begin so, by name.
  virtual std::vector<TimerTable::Entry> timers(std::string_view prefix) const = 0;

  void after(std::string name, Duration wait, Task task) {
    set_timer(std::move(name), add_saturating(now(), wait), std::move(task));
  }
};

// A loop with a thread of its own.
class ThreadLoop final : public Loop {
 public:
  // The clock must outlive it, and run at the pace of the steady clock.
  explicit ThreadLoop(const Clock& clock);
  ~ThreadLoop() override;  // stops first

  void post(Task task) override;
  Timestamp now() const override { return clock_.now(); }
  void set_timer(std::string name, Timestamp due, Task task) override;
  void cancel_timer(std::string_view name) override;
  std::vector<TimerTable::Entry> timers(std::string_view prefix) const override;

  // Runs what was posted before, forgets the timers, and joins the thread. Later posts are dropped.
  void stop();

 private:
  void run();
  bool run_posted();

  const Clock& clock_;
  TimerTable timers_;  // the thread's own

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> posted_;  // protected by mutex_
  bool stopping_ = false;    // protected by mutex_
  std::thread thread_;
};

}  // namespace reprise::worker
