#include "engine/waiting_claims.h"

#include <algorithm>

#include "base/check.h"

namespace reprise {

void WaitingClaims::add(WaitingClaim claim) {
  const std::uint64_t arrival = next_arrival_++;
  const ClaimId id = claim.id;
  deadlines_.emplace(claim.deadline, id);
  const auto [entry, inserted] = by_id_.emplace(id, Entry{arrival, std::move(claim)});
  REPRISE_CHECK(inserted);
  line_up(entry->second.claim.queue, entry->second);
  for (const QueueNumber queue : entry->second.claim.also) line_up(queue, entry->second);
}

void WaitingClaims::line_up(QueueNumber queue, const Entry& entry) {
  lines_[queue][static_cast<std::size_t>(entry.claim.command.lane)].emplace(entry.arrival,
                                                                            entry.claim.id);
}

void WaitingClaims::leave(QueueNumber queue, const Entry& entry) {
  const auto lines = lines_.find(queue);
  lines->second[static_cast<std::size_t>(entry.claim.command.lane)].erase(entry.arrival);
  if (std::ranges::all_of(lines->second, [](const Line& line) { return line.empty(); })) {
    lines_.erase(lines);
  }
}

std::optional<WaitingClaim> WaitingClaims::remove(ClaimId id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  Entry entry = std::move(found->second);
  by_id_.erase(found);
  deadlines_.erase({entry.claim.deadline, id});
  leave(entry.claim.queue, entry);
  for (const QueueNumber queue : entry.claim.also) leave(queue, entry);
  return std::move(entry.claim);
}

std::optional<WaitingClaim> WaitingClaims::take_expired(Timestamp now) {
  if (next_deadline() > now) return std::nullopt;
  return remove(deadlines_.begin()->second);
}

std::vector<WaitingClaim> WaitingClaims::take_all_of(QueueNumber queue) {
  std::vector<ClaimId> ids;
  if (const auto lines = lines_.find(queue); lines != lines_.end()) {
    for (const Line& line : lines->second) {
      for (const auto& [arrival, id] : line) ids.push_back(id);
    }
  }
  std::vector<WaitingClaim> taken;
  for (const ClaimId id : ids) {
    Entry& entry = by_id_.at(id);
    WaitingClaim& claim = entry.claim;
    if (claim.also.empty()) {
      taken.push_back(*remove(id));
      continue;
    }
    leave(queue, entry);
    if (claim.queue == queue) {
      claim.queue = claim.also.back();
      claim.also.pop_back();
    } else {
      std::erase(claim.also, queue);
    }
  }
  return taken;
}

std::vector<WaitingClaim> WaitingClaims::take_all() {
  std::vector<WaitingClaim> taken;
  while (!deadlines_.empty()) taken.push_back(*remove(deadlines_.begin()->second));
  return taken;
}

const WaitingClaim* WaitingClaims::first(QueueNumber queue, bool fresh_waits,
                                         bool retry_waits) const {
  const auto lines = lines_.find(queue);
  if (lines == lines_.end()) return nullptr;
  const auto suits = [&](LaneChoice choice) {
    switch (choice) {
      case LaneChoice::any:
        return fresh_waits || retry_waits;
      case LaneChoice::fresh:
        return fresh_waits;
      case LaneChoice::retry:
        return retry_waits;
    }
    return false;
  };
  const Entry* first = nullptr;
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    const Line& line = lines->second[choice];
    if (line.empty() || !suits(static_cast<LaneChoice>(choice))) continue;
    const Entry& head = by_id_.at(line.begin()->second);
    if (first == nullptr || head.arrival < first->arrival) first = &head;
  }
  return first == nullptr ? nullptr : &first->claim;
}

Timestamp WaitingClaims::next_deadline() const {
  return deadlines_.empty() ? kNever : deadlines_.begin()->first;
}

std::size_t WaitingClaims::count_of(QueueNumber queue) const {
  const auto lines = lines_.find(queue);
  if (lines == lines_.end()) return 0;
  std::size_t count = 0;
  for (const Line& line : lines->second) count += line.size();
  return count;
}

}  // namespace reprise
