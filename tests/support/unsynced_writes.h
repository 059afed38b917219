// UnsyncedWrites: what was written to one file since its last sync, and how to take it back.
// A log of writes, each with the bytes it wrote over: cheap for small writes into a large file, and
// exact for a sector that was written more than once.
// Threads: one owner, no locks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace reprise::test {

// What a power cut does to what was not synced.
enum class Loss : std::uint8_t {
  all,    // gone
  tail,   // writes from some place on are gone, and names from some moment on
  pages,  // the same or not, and of what is left any page is as it was before, or zeros
};

std::string loss_name(Loss loss);  // "All", for the name of a test

class UnsyncedWrites {
 public:
  // Appended bytes may be cut at any of them; those written in place, or by a growing truncate,
  // only where a sector begins.
  enum class Cut : std::uint8_t { anywhere, at_sector };

  bool empty() const { return changes_.empty(); }

  // The file grew.
  void grew(std::uint64_t from, std::uint64_t to, Cut cut);
  // A write at `offset` replaced the bytes `before`.
  void overwrote(std::uint64_t offset, std::string before);
  // The file shrank, which is durable at once.
  void shrank(std::uint64_t size);

  // All of it is durable now, except what a failed sync had given up.
  void synced();
  // A kernel takes pages that it failed to write for clean: only writing them again saves them. If
  // the file had grown, no later sync saves any growth.
  void sync_failed();

  // What is left of a file that reads `content` now.
  std::string after_power_cut(std::string content, Loss loss, SeededRandom& random) const;

 private:
  struct Change {
    std::uint64_t begin = 0;  // of what was written; for growth the size before it
    std::uint64_t end = 0;
    std::string before;  // empty for growth
    Cut cut = Cut::at_sector;
    bool given_up = false;

    bool is_growth() const { return before.empty(); }
    std::uint64_t random_place(SeededRandom& random) const;
    void take_back(std::string& content, std::uint64_t from) const;
  };

  void take_back_all(std::string& content) const;
  void take_back_tail(std::string& content, SeededRandom& random) const;
  void take_back_pages(std::string& content, const std::string& durable,
                       SeededRandom& random) const;

  std::vector<Change> changes_;  // in the order of writing
};

}  // namespace reprise::test
