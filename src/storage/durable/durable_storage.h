// DurableStorage: the storage of the product. A batch is committed when the journal has it; an
// overlay in memory says what has changed since the last checkpoint; RocksDB, the base, holds the
// rest.
//
//   commit ──▶ journal (write, fdatasync) ──▶ overlay ── checkpoint, in the background ──▶ base
//   get, scan: overlay over base            start: open the base, replay the journal behind it
//
// Jobs that come and go between two checkpoints never reach the base. docs/format.md has the files,
// byte by byte, and docs/architecture.md the reasons.
//
// Closing does not sync: call sync() before, unless every commit was synced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/storage.h"

namespace rocksdb {
class Env;
}

namespace reprise::storage {

struct DurableOptions {
  std::string directory;
  std::uint64_t block_cache_bytes = 16ULL << 20;
  // What a checkpoint has to write at most, about: it starts when the overlay holds that much.
  std::uint64_t overlay_bytes = 64ULL << 20;
  // And when the journal has grown to this, even if hardly anything of it is left to write: a start
  // has to read it.
  std::uint64_t journal_bytes = 64ULL << 20;
  std::uint64_t segment_bytes_min = 1ULL << 20;
  std::uint64_t segment_bytes_max = 16ULL << 20;
  // What most commits are. Synced ones are fast where zeros were written before; the others need
  // not wait for these.
  Durability commits = Durability::synced;
  // Tests put a faulty or in-memory file system here; null: the real one. With one of their own
  // there is no LOCK file.
  ::rocksdb::Env* env = nullptr;
  // False: checkpoints run inside commit(), so that a run can be repeated exactly.
  bool background = true;
  // Hears what an operator should know about what went well nevertheless, such as an unfinished
  // write that a power cut left. May be empty.
  std::function<void(std::string_view)> notice;
  // Hears of a failure that no call has returned yet; all later commits fail with it, too. Called
  // on any thread, perhaps more than once, and before RocksDB deletes the files of a change that it
  // takes for failed: after a failed sync that change may be there nevertheless. So whoever ends
  // the process here leaves a directory that opens. May be empty.
  std::function<void(const Error&)> on_failure;
};

// Creates the directory (mode 0700) when it is not there. Errors name the file and what to do: in
// use by another process, format too new, damaged, not readable.
Result<std::unique_ptr<Storage>> open_durable_storage(const DurableOptions& options);

}  // namespace reprise::storage
