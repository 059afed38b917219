// What a salvage could read, and what not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "model/queue.h"

namespace reprise::storage {

struct SalvagedQueue {
  QueueName name;
  QueueNumber number{};
  bool recovered = false;  // its record was lost: name and config are not its own
  std::uint64_t live_kept = 0;
  std::uint64_t live_lost = 0;
  std::uint64_t live_reset = 0;  // of those kept: their state was lost, they are fresh again
  std::uint64_t dead_kept = 0;
  std::uint64_t dead_lost = 0;
};

struct SalvageReport {
  std::vector<SalvagedQueue> queues;  // by namespace and name
  std::uint64_t batches_read = 0;     // of the journal
  std::uint64_t batches_lost = 0;
  // Places that could not be read, and what was in them is not known.
  std::uint64_t places_lost = 0;
  std::vector<std::string> damage;  // in words, with file and place; the first ones

  SalvagedQueue totals() const;
  bool lost_anything() const;
};

// Collects damage on the way. One owner, no locks.
class DamageLog {
 public:
  // Something cannot be read, and what was in it is lost.
  void lost(std::string what) {
    ++places_;
    keep(std::move(what));
  }
  // Something is not as it should be, and there is a way around it.
  void noted(std::string what) { keep(std::move(what)); }

  std::uint64_t places() const { return places_; }
  bool mentions(std::string_view what) const;
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void keep(std::string what);

  std::uint64_t places_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace reprise::storage
