// The journal of a damaged directory: every batch that can be read, in order.
//
// A start stops at the first batch it cannot read and asks whether it was promised. Here reading
// goes on behind it, if it was; if it was not, what follows is the rest of a write that a power cut
// left, and is left out as a start would.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "storage/durable/overlay.h"
#include "storage/durable/salvage_report.h"
#include "storage/records.h"

namespace reprise::storage {

struct SalvagedJournal {
  std::shared_ptr<const Overlay>
      overlay;                     // what it says on top of the base; values are in its files
  std::uint64_t batches_read = 0;  // found, whether the base has them or not
  std::uint64_t batches_lost = 0;  // that the base has not
};

// `directory` is only read. `checkpoint` is how far the base has come; nullopt: that is not known,
// and all that is found counts.
SalvagedJournal salvage_journal(const std::string& directory,
                                const std::optional<CheckpointRecord>& checkpoint,
                                DamageLog& damage);

}  // namespace reprise::storage
