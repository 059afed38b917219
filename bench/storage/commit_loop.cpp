#include "commit_loop.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "require.h"

namespace reprise::bench {
namespace {

constexpr std::chrono::milliseconds kSyncInterval{100};

}  // namespace

CommitLoop::CommitLoop(Committer& committer, Mode mode, Source source)
    : committer_(committer), mode_(mode), source_(std::move(source)) {}

void CommitLoop::run() {
  const std::size_t at_once = mode_ == Mode::sync ? committer_.at_once() : 1;
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < at_once; ++i) others.emplace_back([this] { run_thread(); });
  run_thread();
  for (std::thread& other : others) other.join();
  if (mode_ == Mode::interval) committer_.sync();
}

void CommitLoop::run_thread() {
  try {
    commit_all();
  } catch (const std::exception& error) {
    // Others may wait for their turn behind this one, so there is nothing to return to.
    fmt::print(stderr, "{}\n", error.what());
    std::_Exit(1);
  }
}

void CommitLoop::commit_all() {
  while (true) {
    std::unique_lock lock(mutex_);
    const storage::Batch* const batch = source_.next();
    if (batch == nullptr) return;
    const std::uint64_t number = next_number_++;
    lock.unlock();
    const TimePoint started = Clock::now();
    commit(*batch, number);
    if (mode_ == Mode::interval) sync_if_due(started);
    lock.lock();
    latency_.record(Clock::now() - started);
    source_.done(batch);
  }
}

void CommitLoop::commit(const storage::Batch& batch, std::uint64_t number) {
  beginning_.wait_for(number);
  const auto commit = committer_.begin(
      batch, mode_ == Mode::sync ? storage::Durability::synced : storage::Durability::buffered);
  beginning_.pass();
  commit->write();
  finishing_.wait_for(number);
  require(commit->finish());
  finishing_.pass();
}

void CommitLoop::sync_if_due(TimePoint now) {
  if (now - last_sync_ < kSyncInterval) return;
  committer_.sync();
  last_sync_ = now;
}

}  // namespace reprise::bench
