// Table files whose large reads go past the page cache. Whoever reads much at once (a compaction,
// or what reads ahead of claims) reads it once, and a page of the page cache that nobody has used
// before costs more to touch than its bytes cost to read; small reads stay in it, because the same
// block may be asked for again.
#pragma once

#include <rocksdb/file_system.h>

#include <cstddef>
#include <memory>

namespace reprise::storage {

// Reads of this size and more, of whole blocks of the disk, are meant.
inline constexpr std::size_t kPastPageCacheBytesMin = 64U << 10;

// The real file system with such table files; everything else is as it is there, and so are they
// where a file system has no way past its page cache. Threads: any.
std::shared_ptr<::rocksdb::FileSystem> read_past_page_cache();

}  // namespace reprise::storage
