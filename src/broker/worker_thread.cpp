#include "broker/worker_thread.h"

#include <utility>

#include "base/thread_name.h"

namespace reprise {

WorkerThread::WorkerThread(std::string name, std::size_t queued_max)
    : name_(std::move(name)), queued_max_(queued_max), thread_([this] { run(); }) {}

WorkerThread::~WorkerThread() { stop(); }

bool WorkerThread::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || tasks_.size() >= queued_max_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void WorkerThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void WorkerThread::run() {
  name_this_thread(name_);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace reprise
