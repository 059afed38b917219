// Checkpoint: writes what an overlay holds into the base, with the job index and the number of the
// last batch it covers, as one atomic step.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "storage/durable/overlay.h"
#include "storage/journal/format.h"
#include "storage/rocksdb/database.h"
#include "storage/rocksdb/pace.h"

namespace reprise::storage {

// For a new base: nothing but who it is.
Status write_first_checkpoint(Database& base, const std::string& directory,
                              const journal::DirectoryId& id);

// `overlay` changes no more, and the journal is synced up to its last batch. `directory` is for
// files on their way. `pace`: is told how far it is. `nobody_looks_back`: whether no reader is
// left that wants to see what was there before the overlay's last batch; from then on none comes,
// either. Errc::disk_full: nothing has changed for any reader, it may be tried again.
Status write_checkpoint(Database& base, const std::string& directory,
                        const journal::DirectoryId& id, std::shared_ptr<const Overlay> overlay,
                        Pace& pace, const std::function<bool()>& nobody_looks_back);

}  // namespace reprise::storage
