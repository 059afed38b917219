// FaultyFileSystem: a file system that loses what was not synced, as a power cut does, and fails
// when told to. It writes through to another one (the real one or RocksDB's in memory) and notes
// how much of it a disk would have kept.
//
//   auto files = std::make_shared<FaultyFileSystem>(base);
//   auto env = make_env(files);   // DurableOptions::env
//   ... commit ...
//   files->crash();       // from here on every change fails
//   storage.reset();      // as the process dies
//   files->restart();
//   ... open again, and see what is there ...
//
// What counts as durable:
//   - the bytes of a file, and its size, at its last sync. What was written in place since then
//     goes back to the bytes that were there, which in a recycled file are old data. Disks write
//     sectors of 512 bytes whole.
//   - that a file was made, linked, renamed or deleted, or a directory made or renamed, once the
//     directory it is in was synced. A rename undone brings back both names as they were; one
//     between two directories is durable once either was synced.
// Truncation, also by making a file anew under its old name, and the deletion of a directory are
// durable at once. Real syncs are left out, which makes tests fast.
// Threads: any.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/unsynced_writes.h"

namespace reprise::test {

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(std::shared_ptr<rocksdb::FileSystem> base);

  // The power goes. Every change fails until restart(), by when all files must be closed.
  // `seed` picks what stays, where there is a choice. Ends all faults asked for below.
  void crash(Loss loss = Loss::all, std::uint64_t seed = 0);
  void restart();

  // The power goes in the midst of the nth change from here (1: the next; 0: never): it and all
  // later ones fail. crash() then picks what is left; of that change there may be all, some or
  // nothing. A change is a write, truncation or sync, the making, linking, renaming or deletion of
  // a name, or the sync of a directory.
  void crash_at(std::uint64_t nth);
  // Changes so far, for a test that cuts the power at each.
  std::uint64_t operations() const;

  // The nth sync (1: the next) of a file whose name ends in `suffix` fails, once. What it was to
  // make durable stays lost even if a later sync succeeds, as with a real fsync; bytes that are
  // written once more, in place, can be saved.
  void fail_sync(std::uint64_t nth, std::string suffix = ".log");
  // The same for a write, which finds the disk full.
  void fail_write(std::uint64_t nth, std::string suffix = ".log");
  // Whether that has happened, since it was asked for.
  bool write_failed() const;
  // From here on every write to a file whose name ends in `suffix` finds the disk full, until told
  // otherwise (nullopt).
  void fill_disk(std::optional<std::string> suffix);

  // Syncs so far of files whose name ends in `suffix`.
  std::uint64_t syncs(const std::string& suffix = ".log") const;

  // rocksdb::FileSystem.
  const char* Name() const override { return "FaultyFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Truncate(const std::string& path, std::size_t size,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;

  rocksdb::IOStatus DeleteDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;

 private:
  class WritableFile;
  class RandomRWFile;
  class Directory;

  // A file, whatever it is called: links share one, and open handles keep theirs over a rename.
  struct File {
    std::string path;  // the latest, for faults and counts
    std::uint64_t size = 0;
    std::uint64_t boot = 0;
    UnsyncedWrites unsynced;
  };
  // A file that lost its name. The handle keeps its bytes, at no cost.
  struct Nameless {
    std::shared_ptr<File> file;
    std::unique_ptr<rocksdb::FSRandomAccessFile> content;
  };
  // A change of names that no sync of a directory has made durable.
  struct NameChange {
    enum class Kind : std::uint8_t { made, made_directory, renamed, deleted };
    Kind kind{};
    std::string path;   // as of now: if a directory above it is renamed, this changes
    std::string from;   // if renamed
    Nameless previous;  // what `path` meant before, if it did
  };
  struct Fault {
    std::uint64_t countdown = 0;  // 0: none
    std::string suffix;
    bool hits(const std::string& path);
  };
  // What to do with a change during which the power goes. Where it can be taken back it is made,
  // and crash() chooses.
  enum class WhenCut : std::uint8_t { make, leave_out };

  // All below expect the mutex to be held.

  // Every change starts with begin() and, if it is made even when cut, ends with end().
  rocksdb::IOStatus begin(WhenCut when_cut);
  rocksdb::IOStatus begin(const File& file, WhenCut when_cut);
  rocksdb::IOStatus end(rocksdb::IOStatus status) const;
  rocksdb::IOStatus check_power() const;

  rocksdb::IOStatus begin_write(const File& file);
  rocksdb::IOStatus sync_file(File& file);
  rocksdb::IOStatus sync_directory(const std::string& path);
  void settle_names(const std::function<bool(const std::string&)>& is_settled);
  void note(NameChange::Kind kind, std::string path, std::string from = {}, Nameless previous = {});
  void note_truncation(File& file, std::uint64_t size);
  const std::shared_ptr<File>& track(const std::string& path);
  const std::shared_ptr<File>& track_new(const std::string& path);
  void relocate(const std::string& from, const std::string& to);
  Nameless keep(const std::string& path);

  void take_back(NameChange change);
  void give_name(const std::string& path, Nameless file);
  void lose_bytes(Loss loss, SeededRandom& random);

  // These act on the file system below.
  bool exists(const std::string& path) const;
  std::uint64_t size_of(const std::string& path) const;
  std::string read(const std::string& path) const;
  void create(const std::string& path, std::string_view content);
  void grow(const std::string& path, std::uint64_t size);
  rocksdb::IOStatus link_or_copy(const std::string& from, const std::string& to, bool& linked);
  void remove_tree(const std::string& path);

  mutable std::mutex mutex_;  // guards all below
  bool power_ = true;
  std::uint64_t boot_ = 0;                              // handles of earlier ones are dead
  std::map<std::string, std::shared_ptr<File>> files_;  // one that is not listed is wholly durable
  std::vector<NameChange> names_;                       // in the order of their making
  std::uint64_t operations_ = 0;
  std::uint64_t crash_at_ = 0;  // 0: never
  std::map<std::string, std::uint64_t> sync_counts_;
  Fault sync_fault_;
  Fault write_fault_;
  bool write_failed_ = false;
  std::optional<std::string> full_for_;
};

// An Env on these files in which nobody sleeps: RocksDB waits a second after each failed write.
std::unique_ptr<rocksdb::Env> make_env(const std::shared_ptr<FaultyFileSystem>& files);

}  // namespace reprise::test
