// Server: a BrokerCore on a disk, with batches on their way to it. It can die at any moment; what
// survives must be the state after some batch: not before the last synced one, and nothing between.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "broker/core.h"
#include "sim/disk.h"
#include "sim/image.h"
#include "sim/model.h"
#include "sim/saboteur.h"

namespace reprise::sim {

enum class Death : std::uint8_t { kill, power_cut };

class Server {
 public:
  struct Options {
    DiskKind disk{};
    Sabotage sabotage{};
    std::uint64_t cache_bytes{};
    std::uint64_t seed{};
  };
  explicit Server(const Options& options);

  Engine& engine() { return core_->engine(); }
  const storage::Storage& storage() const { return disk_->storage(); }

  void tick(Timestamp now) {
    if (!saboteur_.swallows_tick(core_->engine(), now)) core_->engine().tick(now);
  }
  // Answers of hooks as they reach the engine.
  std::vector<HookResult> as_told(std::vector<HookResult> results) {
    saboteur_.tamper(results);
    return results;
  }
  // Runs once the open batch is durable: a reply leaves.
  void reply_when_synced(std::function<void()> reply) { open_replies_.push_back(std::move(reply)); }

  // Ends the open batch; `model` is the state it leads to. The batch's events come back.
  std::vector<Event> seal(const Model& model, Timestamp now);
  std::size_t sealed() const { return sealed_.size(); }  // and not committed
  // False: the disk failed, and the server must die of a power cut.
  [[nodiscard]] bool commit_next(storage::Durability durability);
  [[nodiscard]] bool sync();
  void fail_next_sync() { disk_->fail_next_sync(); }
  // Tells the core of all commits so far.
  void settle();
  std::uint64_t unsettled() const { return committed_ - settled_; }
  // What is stored is the state after the last committed batch.
  void check_storage() const;

  struct Survivor {
    Model model;
    Image image;
    Timestamp clock;               // the latest time that is stored
    std::uint64_t lost_batches{};  // committed, not synced, and gone
  };
  // Dies and starts again.
  Survivor restart(Death death, std::uint64_t seed);

 private:
  struct Sealed {
    SealedBatch batch;
    std::vector<std::function<void()>> replies;
  };

  void recover();
  void now_synced();
  Timestamp stored_clock() const;
  Survivor survivor(std::uint64_t first, std::uint64_t last) const;
  void store_torn_half();

  const Options options_;
  Saboteur saboteur_;
  const std::unique_ptr<Random> random_;
  const std::unique_ptr<Disk> disk_;
  std::unique_ptr<BrokerCore> core_;

  // Batches are numbered from 1 after each start; 0 is the state that was found.
  std::uint64_t committed_ = 0;
  std::uint64_t synced_ = 0;
  std::uint64_t settled_ = 0;
  std::optional<std::uint64_t> uncertain_;  // a commit that failed: nobody knows if it is there
  std::map<std::uint64_t, Model> models_;   // by batch, from the last synced one on
  std::deque<Sealed> sealed_;
  std::vector<std::function<void()>> open_replies_;
  std::vector<std::function<void()>> unsynced_replies_;  // committed
};

}  // namespace reprise::sim
