// WorkerThread: runs tasks one after the other on a thread of its own.
// Threads: post() from any thread.
#pragma once

#include <absl/functional/any_invocable.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace reprise {

class WorkerThread {
 public:
  using Task = absl::AnyInvocable<void()>;

  WorkerThread(std::string name, std::size_t queued_max);
  ~WorkerThread();  // stop()

  // False when too many tasks wait already, or after stop(); the task is then not run.
  [[nodiscard]] bool post(Task task);
  // Runs what was posted, then joins.
  void stop();

 private:
  void run();

  const std::string name_;
  const std::size_t queued_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // Protected by mutex_.
  std::deque<Task> tasks_;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace reprise
