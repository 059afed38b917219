// ManualLoop: a worker's loop that a test turns by hand, with a clock of its own.
// Threads: one owner, no locks.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/fake_clock.h"
#include "worker/loop.h"

namespace reprise::test {

class ManualLoop final : public worker::Loop {
 public:
  // The clock must outlive it.
  explicit ManualLoop(FakeClock& clock) : clock_(clock) {}

  void post(worker::Task task) override { posted_.push_back(std::move(task)); }
  Timestamp now() const override { return clock_.now(); }
  void set_timer(std::string name, Timestamp due, worker::Task task) override {
    timers_.set(std::move(name), due, std::move(task));
  }
  void cancel_timer(std::string_view name) override { timers_.cancel(name); }
  std::vector<worker::TimerTable::Entry> timers(std::string_view prefix) const override {
    return timers_.list(prefix);
  }

  // Everything that was posted, and what that posts, and the timers that are due.
  void run() {
    while (true) {
      if (!posted_.empty()) {
        worker::Task task = std::move(posted_.front());
        posted_.pop_front();
        task();
      } else if (auto due = timers_.take_due(now())) {
        (*due)();
      } else {
        return;
      }
    }
  }

  // Time passes, from timer to timer.
  void advance(Duration by) {
    run();
    const Timestamp end = clock_.now() + by;
    while (true) {
      const auto due = timers_.next_due();
      if (!due || *due > end) break;
      clock_.set(*due);
      run();
    }
    clock_.set(end);
    run();
  }

 private:
  FakeClock& clock_;
  worker::TimerTable timers_;
  std::deque<worker::Task> posted_;
};

}  // namespace reprise::test
