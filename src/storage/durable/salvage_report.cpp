#include "storage/durable/salvage_report.h"

#include <algorithm>

namespace reprise::storage {
namespace {

// A disk that fails everywhere must not fill the memory with words.
constexpr std::size_t kLinesMax = 1000;

}  // namespace

SalvagedQueue SalvageReport::totals() const {
  SalvagedQueue sum;
  for (const SalvagedQueue& queue : queues) {
    sum.live_kept += queue.live_kept;
    sum.live_lost += queue.live_lost;
    sum.live_reset += queue.live_reset;
    sum.dead_kept += queue.dead_kept;
    sum.dead_lost += queue.dead_lost;
  }
  return sum;
}

bool SalvageReport::lost_anything() const {
  const SalvagedQueue sum = totals();
  const bool recovered = std::ranges::any_of(queues, &SalvagedQueue::recovered);
  return recovered ||
         places_lost + batches_lost + sum.live_lost + sum.live_reset + sum.dead_lost > 0;
}

bool DamageLog::mentions(std::string_view what) const {
  return std::ranges::any_of(
      lines_, [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

void DamageLog::keep(std::string what) {
  if (lines_.size() >= kLinesMax || std::ranges::find(lines_, what) != lines_.end()) return;
  lines_.push_back(std::move(what));
}

}  // namespace reprise::storage
