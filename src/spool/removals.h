// Removals: deletes the files of events that the endpoint has taken, on threads of its own. Where a
// file system discards freed blocks at once, a deletion waits for the disk; several wait together,
// and the next request goes out meanwhile.
// Invariants: never more than kMostWaiting are outstanding, so that a crash sends little again;
// when finish() or the destructor returns, none is. Threads: one owner; SpoolFiles::remove() is
// called on the others.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "spool/spool_files.h"

namespace reprise::spool {

class Removals {
 public:
  static constexpr std::size_t kMostWaiting = 200;

  // With no threads add() itself deletes. `files` must outlive it.
  Removals(SpoolFiles& files, std::size_t threads) : files_(files), thread_count_(threads) {}
  ~Removals();
  Removals(const Removals&) = delete;
  Removals& operator=(const Removals&) = delete;

  // A file of queue/.
  void add(const std::string& name);

  struct Failure {
    std::string name;
    std::string problem;
  };
  // What could not be deleted of all that were added so far; each is told once.
  std::vector<Failure> finish();

 private:
  void remove(const std::string& name);
  void run();
  bool done() const { return waiting_.empty() && busy_ == 0; }

  SpoolFiles& files_;
  const std::size_t thread_count_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::deque<std::string> waiting_;
  std::size_t busy_ = 0;  // threads that delete a file
  bool stopping_ = false;
  std::vector<Failure> failures_;

  std::vector<std::thread> threads_;  // started with the first file
};

}  // namespace reprise::spool
