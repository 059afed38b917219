// MemoryDisk: a disk in memory that can lose power and fail, with an Env on it; and images of what
// is on some disk, to damage and to start from again.
#pragma once

#include <rocksdb/env.h>

#include <map>
#include <memory>
#include <string>

#include "support/faulty_file_system.h"

namespace reprise::test {

// The files below a directory, by their path from there: "CURRENT", "db/000012.sst".
using DiskImage = std::map<std::string, std::string>;

// One level of directories below is looked into, which is as deep as a data directory goes.
DiskImage read_image(rocksdb::Env& env, const std::string& directory);
// Makes the directories too. Other files stay where they are.
void write_image(rocksdb::Env& env, const std::string& directory, const DiskImage& image);

class MemoryDisk {
 public:
  MemoryDisk();
  ~MemoryDisk();

  FaultyFileSystem& files() { return *files_; }
  std::shared_ptr<FaultyFileSystem> shared_files() { return files_; }
  // Nobody sleeps in it.
  rocksdb::Env& env() { return *env_; }

  // What is on it, past the faults and the power; and the same for a disk that has it all safely.
  DiskImage image(const std::string& directory) { return read_image(*memory_, directory); }
  void load(const std::string& directory, const DiskImage& image) {
    write_image(*memory_, directory, image);
  }

 private:
  const std::unique_ptr<rocksdb::Env> memory_;
  const std::shared_ptr<FaultyFileSystem> files_;
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace reprise::test
