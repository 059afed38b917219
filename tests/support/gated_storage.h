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
  // The commit that begins next waits until let_go(), those behind it do not.
  void hold_next() { set(&GatedStorage::next_is_held_, true); }
  void let_go() {
    set(&GatedStorage::held_, false);
    set(&GatedStorage::one_is_held_, false);
  }
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
  // Blocks until so many commits wait at the gate.
  void wait_for_commits_at_gate(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }
  // Blocks until so many have passed it.
  void wait_for_writes(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return written_ >= count; });
  }
  void wait_for_commit_at_gate() { wait_for_commits_at_gate(1); }

  Result<std::unique_ptr<Commit>> begin_commit(const storage::Batch& batch,
                                               storage::Durability durability) override {
    auto inner = inner_->begin_commit(batch, durability);
    if (!inner) return inner.error();
    const std::lock_guard lock(mutex_);
    const bool alone = std::exchange(next_is_held_, false);
    one_is_held_ |= alone;
    return std::unique_ptr<Commit>(std::make_unique<GatedCommit>(*this, *std::move(inner), alone));
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
  class GatedCommit final : public Commit {
   public:
    GatedCommit(GatedStorage& storage, std::unique_ptr<Commit> inner, bool is_held_alone)
        : storage_(storage), inner_(std::move(inner)), is_held_alone_(is_held_alone) {}
    void write() override {
      storage_.pass_gate(is_held_alone_);
      inner_->write();
    }
    Status finish() override {
      REPRISE_TRY(storage_.count_commit());
      return inner_->finish();
    }

   private:
    GatedStorage& storage_;
    const std::unique_ptr<Commit> inner_;
    const bool is_held_alone_;
  };

  void pass_gate(bool is_held_alone) {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_ && !(is_held_alone && one_is_held_); });
    --waiting_;
    ++written_;
    changed_.notify_all();
  }
  Status count_commit() {
    const std::lock_guard lock(mutex_);
    if (failing_commits_) return Error{Errc::io, "planted failure"};
    ++commits_;
    return ok();
  }

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
  bool next_is_held_ = false;
  bool one_is_held_ = false;
  bool backups_held_ = false;
  bool failing_commits_ = false;
  bool failing_syncs_ = false;
  int waiting_ = 0;
  int written_ = 0;
  int commits_ = 0;
  int syncs_ = 0;
  int reclaims_ = 0;
  mutable int gets_ = 0;
  mutable std::vector<std::pair<std::string, std::string>> prefetched_;
};

}  // namespace reprise::test
