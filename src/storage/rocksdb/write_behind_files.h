// WriteBehindFiles: a file system whose new files are written past the page cache, each on a thread
// of its own, so that whoever fills one goes on while the disk works. Memory of the page cache that
// nobody has used before is dear on virtual machines: a copy into it took longer than the disk.
#pragma once

#include <rocksdb/env.h>

#include <memory>

#include "storage/rocksdb/pace.h"

namespace reprise::storage {

// Everything but new files to append to is the real file system's. A file system that knows no way
// past its page cache refuses to make one: IsInvalidArgument(). Every write is followed by a pause
// of some times its own length unless `pace`, which outlives all of it, hurries.
std::unique_ptr<::rocksdb::Env> make_write_behind_files(const Pace& pace);

}  // namespace reprise::storage
