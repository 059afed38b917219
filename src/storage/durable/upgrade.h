// Upgrade: makes the base of a directory that an older build has left one of this format.
#pragma once

#include <string>

#include "base/result.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

// In one atomic step; nothing to do for a base of this format. `directory` is for files on their
// way. The job index of format 3 knows no scheduling attributes, so they are read from the jobs'
// records, once and for all. Format 4 differs in the journal alone.
Status upgrade_base(Database& base, const std::string& directory);

}  // namespace reprise::storage
