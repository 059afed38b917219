// Storage: ordered keyspaces with atomic batches. The only thing above it that knows how data is
// kept is nobody: swap the implementation and the broker does not notice.
//
// Errors: only Errc::io and Errc::corrupt; absence is an empty optional.
// After a commit or sync() has failed with Errc::io nothing is known about what reached the disk:
// the caller must stop and let a restart find out. Neither is ever retried.
// Threads: begin_commit(), Commit::finish() and commit() each by one thread at a time, which may be
// another than the others'; sync() while no commit is under way; everything else from any thread,
// at any time. Readers see whole batches only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/batch.h"
#include "storage/keyspace.h"

namespace reprise::storage {

class LiveJobVisitor;  // live_jobs.h

enum class Durability : std::uint8_t {
  buffered,  // survives the process, not the machine
  synced,    // survives a power cut: returns after fdatasync
};

class Storage {
 public:
  virtual ~Storage() = default;

  // A batch on its way to the disk. Several may be under way, so that a disk that can do more than
  // one write at a time does; they take effect in the order in which they began.
  class Commit {
   public:
    virtual ~Commit() = default;
    // The slow part: beside that of others, on any thread. Once.
    virtual void write() = 0;
    // Applies the batch atomically, or says why write() failed. When it returns ok with
    // Durability::synced, the batch and every batch before it are on disk. Once, after write(), and
    // in the order in which the commits began; must be called.
    virtual Status finish() = 0;
  };
  // Gives the batch its place behind those that began before. May wait for them to finish, so
  // whoever has one to finish must not wait here. `batch` must outlive the commit.
  virtual Result<std::unique_ptr<Commit>> begin_commit(const Batch& batch,
                                                       Durability durability) = 0;

  // All of it at once.
  Status commit(const Batch& batch, Durability durability) {
    const auto begun = begin_commit(batch, durability);
    if (!begun) return begun.error();
    (*begun)->write();
    return (*begun)->finish();
  }

  // Makes every earlier buffered commit durable.
  virtual Status sync() = 0;

  virtual Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const = 0;

  // Calls `visit` for each pair with begin <= key < end in key order, until it returns false. An
  // empty `end` means the keyspace's end. One consistent view: batches committed meanwhile are not
  // seen. The views passed are valid during the call only.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  virtual Status scan(Keyspace keyspace, std::string_view begin, std::string_view end,
                      const Visit& visit) const = 0;

  // A reader that walks several keyspaces side by side at one consistent point.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    virtual bool valid() const = 0;  // false at the end and after an error
    virtual std::string_view key() const = 0;
    virtual std::string_view value() const = 0;
    virtual void next() = 0;
    virtual Status status() const = 0;
  };
  class Snapshot {
   public:
    virtual ~Snapshot() = default;
    // The cursor must not outlive the snapshot.
    virtual std::unique_ptr<Cursor> cursor(Keyspace keyspace, std::string_view begin,
                                           std::string_view end) const = 0;
    virtual Result<std::optional<std::string>> get(Keyspace keyspace,
                                                   std::string_view key) const = 0;
  };
  // Must not outlive the storage. Keeps what it shows from being reclaimed: hold it briefly.
  virtual std::unique_ptr<Snapshot> snapshot() const = 0;

  // A hint: from `begin` to before `end` will be read soon, in order. Returns at once.
  virtual void prefetch(Keyspace keyspace, std::string_view begin, std::string_view end) const = 0;

  // Every job that is not dead, as a restart wants to know it. Queue by queue; within a queue in no
  // order. Errc::corrupt names a job that cannot be trusted.
  virtual Status visit_live_jobs(LiveJobVisitor& visitor) const = 0;

  // Writes a copy of all that is committed to a directory that is not there yet, or is empty; a
  // server can be started on it. Returns the copy's bytes. May take long; safe beside everything
  // else, and never the end of the storage: Errc::directory_not_empty, Errc::invalid_field (the
  // directory is inside the storage's own), Errc::disk_full, Errc::shutting_down (interrupted),
  // Errc::backup_failed. What was written of the copy is then gone again.
  virtual Result<std::uint64_t> backup(const std::string& directory) = 0;

  // Gives the space of an erased range back to the file system, so that nothing of it is left on
  // disk. For a range that nobody writes to any more. May take long; safe beside everything else.
  virtual Status reclaim(Keyspace keyspace, std::string_view begin, std::string_view end) = 0;
  // Makes a reclaim or backup that runs end soon, undone, and later ones at once: for a stop that
  // must not wait. Any thread.
  virtual void interrupt_maintenance() = 0;

  // For metrics: "memory", "rocksdb".
  virtual std::string_view kind() const = 0;
  virtual std::uint64_t disk_bytes() const = 0;
  // The disk has no room for more than what was set aside: commits still work, for a while.
  virtual bool out_of_space() const = 0;
};

}  // namespace reprise::storage
