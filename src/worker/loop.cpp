#include "worker/loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_name.h"

namespace reprise::worker {
namespace {

// Waiting is done in the steady clock, which the given one follows; never longer than this at once.
constexpr Duration kLongestWait = std::chrono::hours(1);

}  // namespace

ThreadLoop::ThreadLoop(const Clock& clock) : clock_(clock) {
  thread_ = std::thread([this] {
    name_this_thread("workers");
    run();
  });
}

ThreadLoop::~ThreadLoop() { stop(); }

void ThreadLoop::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    posted_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void ThreadLoop::set_timer(std::string name, Timestamp due, Task task) {
  timers_.set(std::move(name), due, std::move(task));
}

void ThreadLoop::cancel_timer(std::string_view name) { timers_.cancel(name); }

std::vector<TimerTable::Entry> ThreadLoop::timers(std::string_view prefix) const {
  return timers_.list(prefix);
}

void ThreadLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// False: nothing was there, and nothing will be.
bool ThreadLoop::run_posted() {
  std::deque<Task> tasks;
  {
    std::unique_lock lock(mutex_);
    const auto has_work = [this] { return stopping_ || !posted_.empty(); };
    if (const auto due = timers_.next_due()) {
      const Duration wait = std::min(*due - clock_.now(), kLongestWait);
      if (wait > Duration::zero()) changed_.wait_for(lock, wait, has_work);
    } else {
      changed_.wait(lock, has_work);
    }
    if (stopping_ && posted_.empty()) return false;
    tasks.swap(posted_);
  }
  for (Task& task : tasks) task();
  return true;
}

void ThreadLoop::run() {
  while (run_posted()) {
    // Those that are due now; what they set for now has its turn after what was posted.
    const Timestamp now = clock_.now();
    while (auto task = timers_.take_due(now)) (*task)();
  }
  timers_.clear();
}

}  // namespace reprise::worker
