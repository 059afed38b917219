#include "storage/memory/memory_storage.h"

#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/live_jobs.h"

namespace reprise::storage {
namespace {

using Map = std::map<std::string, std::string, std::less<>>;
// Shared with snapshots: whoever writes while a snapshot holds a map writes to a copy of it.
using Maps = std::array<std::shared_ptr<Map>, kAllKeyspaces.size()>;

std::size_t index_of(Keyspace keyspace) { return static_cast<std::size_t>(keyspace); }

Map::const_iterator end_of(const Map& map, std::string_view end) {
  return end.empty() ? map.end() : map.lower_bound(end);
}

std::optional<std::string> find(const Map& map, std::string_view key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

class MemoryCursor final : public Storage::Cursor {
 public:
  MemoryCursor(const Map& map, std::string_view begin, std::string_view end) {
    if (!end.empty() && begin >= end) return;  // singular and equal: at the end
    at_ = map.lower_bound(begin);
    end_ = end_of(map, end);
  }
  bool valid() const override { return at_ != end_; }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override { return at_->second; }
  void next() override { ++at_; }
  Status status() const override { return ok(); }

 private:
  Map::const_iterator at_{};
  Map::const_iterator end_{};
};

class MemorySnapshot final : public Storage::Snapshot {
 public:
  // The caller holds `mutex`, which guards the maps' reference counts.
  MemorySnapshot(const Maps& maps, std::mutex& mutex) : maps_(maps), mutex_(mutex) {}
  // Under the mutex, so that a writer that finds a map unshared has also seen our last read of it.
  ~MemorySnapshot() override {
    const std::scoped_lock lock(mutex_);
    maps_ = {};
  }
  MemorySnapshot(const MemorySnapshot&) = delete;
  MemorySnapshot& operator=(const MemorySnapshot&) = delete;

  std::unique_ptr<Storage::Cursor> cursor(Keyspace keyspace, std::string_view begin,
                                          std::string_view end) const override {
    return std::make_unique<MemoryCursor>(*maps_[index_of(keyspace)], begin, end);
  }
  Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const override {
    return find(*maps_[index_of(keyspace)], key);
  }

 private:
  Maps maps_;
  std::mutex& mutex_;
};

class MemoryStorage final : public CrashableStorage, private Batch::Visitor {
 public:
  MemoryStorage() {
    for (auto& map : maps_) map = std::make_shared<Map>();
  }

  Result<std::unique_ptr<Commit>> begin_commit(const Batch& batch, Durability durability) override {
    return std::unique_ptr<Commit>(std::make_unique<MemoryCommit>(*this, batch, durability));
  }

  Status sync() override {
    const std::scoped_lock lock(mutex_);
    undo_.clear();
    return ok();
  }

  Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const override {
    const std::scoped_lock lock(mutex_);
    return find(*maps_[index_of(keyspace)], key);
  }

  Status scan(Keyspace keyspace, std::string_view begin, std::string_view end,
              const Visit& visit) const override {
    const auto view = snapshot();  // not under the lock: `visit` may call us
    for (const auto at = view->cursor(keyspace, begin, end); at->valid(); at->next()) {
      if (!visit(at->key(), at->value())) break;
    }
    return ok();
  }

  std::unique_ptr<Snapshot> snapshot() const override {
    const std::scoped_lock lock(mutex_);
    return std::make_unique<MemorySnapshot>(maps_, mutex_);
  }

  void prefetch(Keyspace, std::string_view, std::string_view) const override {}
  Status visit_live_jobs(LiveJobVisitor& visitor) const override {
    return scan_live_jobs(*snapshot(), visitor);
  }
  Result<std::uint64_t> backup(const std::string&) override {
    return Error{Errc::backup_failed, "what is kept in memory only has no backup"};
  }

  Status reclaim(Keyspace, std::string_view, std::string_view) override { return ok(); }
  void interrupt_maintenance() override {}
  std::string_view kind() const override { return "memory"; }
  std::uint64_t disk_bytes() const override { return 0; }
  bool out_of_space() const override { return false; }

  void crash() override {
    const std::scoped_lock lock(mutex_);
    for (auto step = undo_.rbegin(); step != undo_.rend(); ++step) {
      Map& map = writable(step->keyspace);
      if (step->before) {
        map.insert_or_assign(std::move(step->key), *std::move(step->before));
      } else {
        map.erase(step->key);
      }
    }
    undo_.clear();
  }

 private:
  class MemoryCommit final : public Commit {
   public:
    MemoryCommit(MemoryStorage& storage, const Batch& batch, Durability durability)
        : storage_(storage), batch_(batch), durability_(durability) {}
    void write() override {}
    Status finish() override {
      storage_.apply(batch_, durability_);
      return ok();
    }

   private:
    MemoryStorage& storage_;
    const Batch& batch_;
    const Durability durability_;
  };

  void apply(const Batch& batch, Durability durability) {
    const std::scoped_lock lock(mutex_);
    batch.visit(*this);
    if (durability == Durability::synced) undo_.clear();
  }

  // What a mutation since the last sync has replaced.
  struct Undo {
    Keyspace keyspace;
    std::string key;
    std::optional<std::string> before;
  };

  Map& writable(Keyspace keyspace) {
    auto& map = maps_[index_of(keyspace)];
    if (map.use_count() > 1) map = std::make_shared<Map>(*map);
    return *map;
  }

  void put(Keyspace keyspace, std::string_view key, std::string_view value) override {
    Map& map = writable(keyspace);
    const auto [at, inserted] = map.try_emplace(std::string(key));
    auto before = inserted ? std::nullopt : std::optional(std::move(at->second));
    undo_.push_back({keyspace, at->first, std::move(before)});
    at->second = value;
  }

  void erase(Keyspace keyspace, std::string_view key) override {
    Map& map = writable(keyspace);
    const auto found = map.find(key);
    if (found != map.end()) erase_at(keyspace, map, found);
  }

  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    Map& map = writable(keyspace);
    for (auto at = map.lower_bound(begin); at != map.end() && at->first < end;) {
      at = erase_at(keyspace, map, at);
    }
  }

  Map::iterator erase_at(Keyspace keyspace, Map& map, Map::iterator at) {
    const auto next = std::next(at);
    auto node = map.extract(at);
    undo_.push_back({keyspace, std::move(node.key()), std::move(node.mapped())});
    return next;
  }

  mutable std::mutex mutex_;  // guards all below
  Maps maps_;
  std::vector<Undo> undo_;  // since the last sync, oldest first
};

}  // namespace

std::unique_ptr<Storage> make_memory_storage() { return std::make_unique<MemoryStorage>(); }

std::unique_ptr<CrashableStorage> make_crashable_memory_storage() {
  return std::make_unique<MemoryStorage>();
}

}  // namespace reprise::storage
