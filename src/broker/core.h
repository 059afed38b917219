// BrokerCore: engine, ledger and storage put together, without threads. The broker drives it from
// its threads; the simulation drives it from a loop, one seed at a time, and crashes it at will.
//
//   apply commands to engine() … seal() → commit(batch) → settled(batch number)
//
// Between seal() and settled() further commands may be applied: they go to the next batch. Replies
// and events of a batch must not leave before its commit() has returned ok.
// Threads: all from the engine's, except encode-and-commit (see commit()).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "broker/batch_ledger.h"
#include "broker/change_set.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "model/limits.h"
#include "storage/storage.h"

namespace reprise {

struct SealedBatch {
  std::uint64_t number{};
  ChangeSet changes;
  std::vector<Event> events;
};

class BrokerCore {
 public:
  struct Options {
    Limits limits;
    std::uint64_t cache_bytes = 16ULL << 20;
  };
  // Rebuilds the engine from what is stored. Errc::corrupt names the record that cannot be trusted.
  static Result<std::unique_ptr<BrokerCore>> recover(const storage::Storage& storage,
                                                     Random& random, const Options& options);

  Engine& engine() { return engine_; }
  const BatchLedger& ledger() const { return ledger_; }

  void change_note(NoteChange change) { ledger_.change_note(std::move(change)); }

  bool has_open_changes() const { return !ledger_.open_changes().empty(); }
  SealedBatch seal(Timestamp now);
  void settled(std::uint64_t batch) { ledger_.settled(batch); }

  // Encodes what has gathered, so that its commit has less to do: for whoever waits for the commit
  // before it.
  void encode_ahead() { ledger_.encode_ahead(); }

  // Encodes and commits one sealed batch. Touches nothing but its arguments: safe on another
  // thread.
  static Status commit(storage::Storage& storage, ChangeSet& changes,
                       storage::Durability durability);

 private:
  BrokerCore(const storage::Storage& storage, Random& random, const Options& options);

  BatchLedger ledger_;
  Engine engine_;
};

}  // namespace reprise
