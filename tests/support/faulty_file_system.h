// FaultyFileSystem: a file system that loses what was not synced, as a power cut does, and fails
// when told to. It writes through to another one (the real one or RocksDB's in memory) and notes
// how much of it a disk would have kept.
//
//   auto files = std::make_shared<FaultyFileSystem>(base);
//   auto env = make_env(files);   // RocksDbOptions::env
//   ... commit ...
//   files->crash();       // from here on every change fails
//   storage.reset();      // as the process dies
//   files->restart();
//   ... open again, and see what is there ...
//
// What counts as durable: the bytes of a file up to its last sync; the name of a new or renamed
// file, and of a new directory, once the directory it is in was synced. A deletion is durable at
// once. Real syncs are left out, which makes tests fast.
// Threads: any.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"

namespace reprise::test {

// What a power cut does to bytes and names that were not synced.
enum class Loss : std::uint8_t {
  all,    // gone
  tail,   // bytes from some place on are gone, and names from some moment on
  pages,  // the same, and any 4 KiB page of what is left may read as zeros
};

class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(std::shared_ptr<rocksdb::FileSystem> base);

  // The power goes. Every change fails until restart(), by when all files must be closed.
  // `seed` picks what stays, where there is a choice.
  void crash(Loss loss = Loss::all, std::uint64_t seed = 0);
  void restart();

  // The nth sync (1: the next) of a file whose name ends in `suffix` fails, once. What it was to
  // make durable stays lost even if a later sync succeeds, as with a real fsync.
  void fail_sync(std::uint64_t nth, std::string suffix = ".log");
  // The same for a write, which finds the disk full.
  void fail_write(std::uint64_t nth, std::string suffix = ".log");

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
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* debug) override;

 private:
  class WritableFile;
  class RandomRWFile;
  class Directory;

  // What is known of a file written here. One that is not listed is wholly durable.
  struct FileState {
    std::uint64_t written = 0;
    std::uint64_t synced = 0;
    bool sync_failed = false;  // nothing written before it will ever be durable
  };
  // A name that its directory has not been synced for.
  struct NewName {
    bool is_directory = false;
    std::optional<std::string> replaced;  // what the name meant before
    std::uint64_t number = 0;             // file systems keep names in the order of their making
  };
  struct Fault {
    std::uint64_t countdown = 0;  // 0: none
    std::string suffix;
    bool hits(const std::string& path);
  };

  // All below expect the mutex to be held.
  rocksdb::IOStatus check_power() const;
  rocksdb::IOStatus check_write(const std::string& path);
  rocksdb::IOStatus sync_file(const std::string& path);
  rocksdb::IOStatus sync_directory(const std::string& path);
  void note_new_name(const std::string& path, NewName name);
  void lose_bytes(const std::string& path, const FileState& state, Loss loss, SeededRandom& random);
  void lose_name(const std::string& path, const NewName& name);
  bool exists(const std::string& path) const;
  std::string read(const std::string& path) const;
  void replace(const std::string& path, std::string_view content);
  void remove(const std::string& path, bool is_directory);

  mutable std::mutex mutex_;  // guards all below
  bool power_ = true;
  std::map<std::string, FileState> files_;
  std::map<std::string, NewName> new_names_;
  std::uint64_t names_made_ = 0;
  std::map<std::string, std::uint64_t> sync_counts_;
  Fault sync_fault_;
  Fault write_fault_;
};

// An Env on these files in which nobody sleeps: RocksDB waits a second after each failed write.
std::unique_ptr<rocksdb::Env> make_env(const std::shared_ptr<FaultyFileSystem>& files);

}  // namespace reprise::test
