#include "batch_pipeline.h"

#include <utility>

namespace reprise::bench {

BatchPipeline::BatchPipeline(Make make) : make_(std::move(make)), thread_([this] { run(); }) {}

BatchPipeline::~BatchPipeline() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<storage::Batch> BatchPipeline::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
  if (ready_.empty()) return std::nullopt;
  storage::Batch batch = std::move(ready_.front());
  ready_.pop_front();
  return batch;
}

void BatchPipeline::give_back(storage::Batch batch) {
  {
    const std::scoped_lock lock(mutex_);
    empty_.push_back(std::move(batch));
  }
  changed_.notify_all();
}

void BatchPipeline::run() {
  while (auto batch = next_empty()) {
    const bool made = make_(*batch);
    {
      const std::scoped_lock lock(mutex_);
      if (made) ready_.push_back(*std::move(batch));
      ended_ = !made;
    }
    changed_.notify_all();
    if (!made) return;
  }
}

std::optional<storage::Batch> BatchPipeline::next_empty() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !empty_.empty() || stopping_; });
  if (stopping_) return std::nullopt;
  storage::Batch batch = std::move(empty_.front());
  empty_.pop_front();
  return batch;
}

}  // namespace reprise::bench
