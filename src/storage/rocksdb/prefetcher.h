// Prefetcher: brings what will be read soon into the block cache, on a thread of its own, so that
// whoever reads it next, the engine's thread, neither waits for the disk nor checks blocks. A hint
// and no more: nothing depends on it, and what it cannot read whoever asks for it hears of.
// Threads: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "storage/rocksdb/database.h"

namespace reprise::storage {

class Prefetcher {
 public:
  explicit Prefetcher(const Database& database);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns at once. With too much to do already, it is forgotten.
  void add(Keyspace keyspace, std::string_view begin, std::string_view end);
  // How many ranges were read, for tests.
  std::uint64_t done() const;

 private:
  struct Range {
    Keyspace keyspace{};
    std::string begin;
    std::string end;
  };

  void run();
  void read(const Range& range) const;

  const Database& database_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::deque<Range> ranges_;
  std::uint64_t done_ = 0;
  bool stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace reprise::storage
