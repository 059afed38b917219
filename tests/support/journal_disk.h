// JournalDisk: a journal alone, on a disk in memory. Opening it recovers what is there, as a start
// does, and notes every batch that was replayed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/journal/journal.h"
#include "storage/journal/recovery.h"
#include "support/memory_disk.h"

namespace reprise::test {

// The segments of a journal, and what stands beside them.
struct JournalImage : DiskImage {
  std::optional<std::string> synced_mark;
};

class JournalDisk {
 public:
  static constexpr char kDirectory[] = "/journal";
  static constexpr char kMarkName[] = "synced";
  static constexpr storage::journal::DirectoryId kId = {'a', ' ', 'd', 'i', 'r'};

  struct Options {
    std::uint64_t segment_bytes_min = 4096;
    std::uint64_t segment_bytes_max = 4096;
    bool background = false;
  };

  JournalDisk() : JournalDisk(Options{}) {}
  explicit JournalDisk(Options options) : options_(options) { disk_.load(kDirectory, {}); }
  // Starts with these files, all of them durable.
  explicit JournalDisk(const JournalImage& image) : JournalDisk(Options{}, image) {}
  JournalDisk(Options options, const JournalImage& image) : options_(options), is_new_(false) {
    DiskImage files = image;
    if (image.synced_mark) files[kMarkName] = *image.synced_mark;
    disk_.load(kDirectory, files);
  }

  // Reads what is there, and leaves it at that. A new disk has nothing to recover: see open().
  Result<storage::journal::Contents> recover(std::uint64_t covered_batch = 0);
  // Recovers, unless the disk is new, and begins the next segment.
  Status open(std::uint64_t covered_batch = 0);
  // As the end of the process does.
  void close() { journal_.reset(); }
  void cut_power(Loss loss, std::uint64_t seed) {
    files().crash(loss, seed);
    close();
    files().restart();
  }

  storage::journal::Journal& journal() { return *journal_; }
  // One batch, from its place to its end.
  Result<storage::journal::Journal::Place> append(std::string_view body, std::uint32_t mutations,
                                                  bool durably);
  FaultyFileSystem& files() { return disk_.files(); }
  storage::journal::SegmentPoolOptions pool_options();
  JournalImage image();

  // By the last recover() or open().
  const std::vector<std::string>& bodies() const { return bodies_; }
  std::uint64_t first_number() const { return first_number_; }  // of bodies(); 0: there are none
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  const Options options_{};
  bool is_new_ = true;
  MemoryDisk disk_;
  std::unique_ptr<storage::journal::Journal> journal_;
  std::vector<std::string> bodies_;
  std::uint64_t first_number_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace reprise::test
