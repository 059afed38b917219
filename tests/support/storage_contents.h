// What a storage holds, as plain maps to compare with.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "storage/batch.h"
#include "storage/keyspace.h"
#include "storage/storage.h"

namespace reprise::test {

using Contents = std::map<storage::Keyspace, std::map<std::string, std::string>>;

// Keyspaces that are empty are not in it. `checkpoint` and `format` in meta are left out: a storage
// may keep them for itself.
Result<Contents> read_contents(const storage::Storage& storage);
Result<Contents> read_contents(const storage::Storage::Snapshot& snapshot);

// What a batch does, done to the maps.
void apply(const storage::Batch& batch, Contents& contents);

// Where the two differ, in a few words; empty when they are the same.
std::string difference(const Contents& expected, const Contents& found);

}  // namespace reprise::test
