#include "spool/removals.h"

#include <utility>

namespace reprise::spool {

Removals::~Removals() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Removals::add(const std::string& name) {
  if (thread_count_ == 0) return remove(name);
  while (threads_.size() < thread_count_) threads_.emplace_back([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.size() < kMostWaiting; });
  waiting_.push_back(name);
  lock.unlock();
  changed_.notify_all();
}

std::vector<Removals::Failure> Removals::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done(); });
  return std::exchange(failures_, {});
}

void Removals::remove(const std::string& name) {
  const auto removed = files_.remove(Folder::queue, name);
  if (removed) return;
  const std::lock_guard lock(mutex_);
  failures_.push_back({name, removed.error().detail});
}

// What is waiting when it is told to stop is still deleted.
void Removals::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::string name = std::move(waiting_.front());
    waiting_.pop_front();
    ++busy_;
    lock.unlock();
    remove(name);
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
}

}  // namespace reprise::spool
