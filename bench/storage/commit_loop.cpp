#include "commit_loop.h"

namespace reprise::bench {
namespace {

constexpr std::chrono::milliseconds kSyncInterval{100};

}  // namespace

CommitLoop::CommitLoop(Committer& committer, Mode mode) : committer_(committer), mode_(mode) {}

void CommitLoop::commit(const storage::Batch& batch) {
  const TimePoint started = Clock::now();
  if (mode_ == Mode::sync) {
    committer_.commit(batch, storage::Durability::synced);
  } else {
    committer_.commit(batch, storage::Durability::buffered);
    if (started - last_sync_ >= kSyncInterval) {
      committer_.sync();
      last_sync_ = started;
    }
  }
  latency_.record(Clock::now() - started);
}

void CommitLoop::finish() {
  if (mode_ == Mode::interval) committer_.sync();
}

}  // namespace reprise::bench
