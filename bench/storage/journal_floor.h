// The floors under every journal: each batch's bytes in one write, durable when it must be, and
// nothing that could be found again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "committer.h"

namespace reprise::bench {

enum class JournalKind : std::uint8_t {
  // A file that grows, and fdatasync: each sync must store the new size, too.
  append,
  // A file that was written before, written over from its start whenever its end is reached, and
  // fdatasync: it stores the data alone.
  overwrite,
  // The same past the page cache, in whole blocks, with the sync in the write: one request to the
  // disk for each batch.
  direct,
};

std::unique_ptr<Committer> open_journal_floor(const std::string& folder, JournalKind kind);

}  // namespace reprise::bench
