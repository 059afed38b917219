// GatedStorage: a storage whose commits a test can hold back, count and make fail. Everything else
// goes to memory.
// Threads: as Storage; hold(), let_go() and fail_…() from any thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/memory/memory_storage.h"
#include "storage/storage.h"

namespace reprise::test {

class GatedStorage final : public storage::Storage {
 public:
  // Commits from now on wait until let_go().
  void hold() { set(&GatedStorage::held_, true); }
  void let_go() { set(&GatedStorage::held_, false); }
  void fail_commits() { set(&GatedStorage::failing_commits_, true); }
  void fail_syncs() { set(&GatedStorage::failing_syncs_, true); }
  int commits() const { return read(commits_); }
  int syncs() const { return read(syncs_); }
  int reclaims() const { return read(reclaims_); }
  int gets() const { return read(gets_); }
  // From where to where it was told that somebody will read.
  std::vector<std::pair<std::string, std::string>> prefetched() const {
    const std::lock_guard lock(mutex_);
    return prefetched_;
  }
  void hold_backups() { set(&GatedStorage::backups_held_, true); }
  void let_backups_go() { set(&GatedStorage::backups_held_, false); }
  // Blocks until a commit waits at the gate.
  void wait_for_commit_at_gate() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

  Status commit(const storage::Batch& batch, storage::Durability durability) override {
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
      --waiting_;
      if (failing_commits_) return Error{Errc::io, "planted failure"};
      ++commits_;
    }
    return inner_->commit(batch, durability);
  }
  Status sync() override {
    {
      const std::lock_guard lock(mutex_);
      ++syncs_;
      if (failing_syncs_) return Error{Errc::io, "planted failure"};
    }
    changed_.notify_all();
    return inner_->sync();
  }
  Result<std::optional<std::string>> get(storage::Keyspace keyspace,
                                         std::string_view key) const override {
    {
      const std::lock_guard lock(mutex_);
      ++gets_;
    }
    return inner_->get(keyspace, key);
  }
  Status scan(storage::Keyspace keyspace, std::string_view begin, std::string_view end,
              const Visit& visit) const override {
    return inner_->scan(keyspace, begin, end, visit);
  }
  std::unique_ptr<Snapshot> snapshot() const override { return inner_->snapshot(); }
  Status reclaim(storage::Keyspace, std::string_view, std::string_view) override {
    const std::lock_guard lock(mutex_);
    ++reclaims_;
    return ok();
  }
  void interrupt_maintenance() override {}
  void prefetch(storage::Keyspace, std::string_view begin, std::string_view end) const override {
    const std::lock_guard lock(mutex_);
    prefetched_.emplace_back(begin, end);
  }
  Status visit_live_jobs(storage::LiveJobVisitor& visitor) const override {
    return inner_->visit_live_jobs(visitor);
  }
  // Of nothing, and always 42 bytes.
  Result<std::uint64_t> backup(const std::string&) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !backups_held_; });
    return std::uint64_t{42};
  }
  bool out_of_space() const override { return false; }
  std::string_view kind() const override { return "gated"; }
  std::uint64_t disk_bytes() const override { return 0; }

 private:
  void set(bool GatedStorage::*flag, bool value) {
    {
      const std::lock_guard lock(mutex_);
      this->*flag = value;
    }
    changed_.notify_all();
  }
  int read(const int& counter) const {
    const std::lock_guard lock(mutex_);
    return counter;
  }

  const std::unique_ptr<Storage> inner_ = storage::make_memory_storage();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool backups_held_ = false;
  bool failing_commits_ = false;
  bool failing_syncs_ = false;
  int waiting_ = 0;
  int commits_ = 0;
  int syncs_ = 0;
  int reclaims_ = 0;
  mutable int gets_ = 0;
  mutable std::vector<std::pair<std::string, std::string>> prefetched_;
};

}  // namespace reprise::test
