// Disk: a storage that a simulated server runs on, and the two ways in which the server can die.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/storage.h"

namespace reprise::sim {

class Disk {
 public:
  virtual ~Disk() = default;
  virtual storage::Storage& storage() = 0;

  // The process dies and the machine lives on: every commit is there afterwards, for good.
  virtual void kill() = 0;
  // The power goes: every commit up to some point is there afterwards, and all that were synced.
  // `seed` picks the point, where there is a choice.
  virtual void cut_power(std::uint64_t seed) = 0;
  // The next synced commit fails; nothing is known of that batch then. Not every disk can.
  virtual bool fail_next_sync() = 0;
};

enum class DiskKind : std::uint8_t { memory, durable };

std::unique_ptr<Disk> make_disk(DiskKind kind);

}  // namespace reprise::sim
