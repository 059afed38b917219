// Salvage: copies what can be read of a damaged data directory into a new one.
//
// The old directory is only read. What is unreadable is stepped over: a block of a table file, a
// frame or a segment of the journal, a record that fails its checksum. What is left is brought to a
// state that a start accepts: no state without its job, no job of an unknown queue, sums that add
// up. A job may be handed out again whose end is in a part that was lost: at least once still
// holds.
//
//   base (salvage_base.h; without its manifest salvage_tables.h) ──┐
//   journal behind it (salvage_journal.h) ── overlay ──────────────┴─▶ salvage_copy.h ──▶ new
//   directory
//
// The new directory is filled under another name inside it and gets its own at the end: a salvage
// that is interrupted leaves nothing that could be taken for a whole one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/durable/salvage_report.h"

namespace reprise::storage {

struct SalvageOptions {
  std::string from;
  std::string to;  // must not be there, or be empty
  // Hears what is being done and how many jobs are through. May be empty.
  std::function<void(std::string_view step, std::uint64_t jobs)> progress;
};

// Errc::invalid_field: the directories are not what they should be, nothing was done.
// Errc::io: `from` is in use, or `to` cannot be written. Errc::corrupt: nothing at all can be read.
Result<SalvageReport> salvage(const SalvageOptions& options);

}  // namespace reprise::storage
