// BatchPipeline: makes batches on a thread of its own, a few ahead of whoever takes them, so that
// what is measured is committing them. Memory is that of a few batches, however many there are.
// Threads: take() and give_back() from one.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "storage/batch.h"

namespace reprise::bench {

class BatchPipeline {
 public:
  // Replaces what is in the batch; false: there are no more.
  using Make = std::function<bool(storage::Batch& batch)>;
  explicit BatchPipeline(Make make);
  ~BatchPipeline();
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;

  // Waits for the next one. Empty: there are no more.
  std::optional<storage::Batch> take();
  // A batch that was taken and is done with: its memory is used again.
  void give_back(storage::Batch batch);

 private:
  static constexpr std::size_t kBatchesAhead = 4;

  void run();
  std::optional<storage::Batch> next_empty();

  const Make make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::deque<storage::Batch> empty_{kBatchesAhead};
  std::deque<storage::Batch> ready_;
  bool ended_ = false;
  bool stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace reprise::bench
