// The last step of a salvage: walks what the base and the journal say together, and writes what
// belongs together to a new storage.
//
// What does not get there: a record that fails its checksum, a state without its job, an
// idempotency key whose job was lost (whoever pushes it again shall not be told that it is there).
// A job whose state cannot be read is kept and fresh again; a queue whose record is lost is made
// anew with defaults, under another name. Memory: what is known of each queue, and eight bytes for
// each job that was lost.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "storage/durable/salvage_base.h"
#include "storage/durable/salvage_journal.h"
#include "storage/durable/salvage_report.h"
#include "storage/storage.h"

namespace reprise::storage {

struct SalvageSource {
  const SalvagedBase& base;
  const SalvagedJournal& journal;
};

// Fills an empty storage, and syncs it. Returns the queues, by name.
Result<std::vector<SalvagedQueue>> copy_salvaged(
    const SalvageSource& from, Storage& to, DamageLog& damage,
    const std::function<void(std::uint64_t)>& progress);

}  // namespace reprise::storage
