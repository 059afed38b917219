// WriteBehindFiles: a file system whose new files are written past the page cache, each on a thread
// of its own, so that whoever fills one goes on while the disk works. Memory of the page cache that
// nobody has used before is dear on virtual machines: a copy into it took longer than the disk.
#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <memory>

namespace reprise::storage {

// Set by whoever waits for the files, at any time. Without it, every write is followed by a pause
// of some times its own length: commits on the same disk are noticeably faster then.
using Hurry = std::atomic<bool>;

// Everything but new files to append to is the real file system's. A file system that knows no way
// past its page cache refuses to make one: IsInvalidArgument(). `hurry` outlives all of it.
std::unique_ptr<::rocksdb::Env> make_write_behind_files(const Hurry& hurry);

}  // namespace reprise::storage
