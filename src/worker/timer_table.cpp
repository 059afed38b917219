#include "worker/timer_table.h"

namespace reprise::worker {

void TimerTable::set(std::string name, Timestamp due, absl::AnyInvocable<void()> task) {
  cancel(name);
  by_due_.emplace(due, name);
  by_name_.emplace(std::move(name), Timer{due, std::move(task)});
}

bool TimerTable::cancel(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  by_due_.erase({found->second.due, found->first});
  by_name_.erase(found);
  return true;
}

std::optional<Timestamp> TimerTable::next_due() const {
  if (by_due_.empty()) return std::nullopt;
  return by_due_.begin()->first;
}

std::optional<absl::AnyInvocable<void()>> TimerTable::take_due(Timestamp now) {
  if (by_due_.empty() || by_due_.begin()->first > now) return std::nullopt;
  const auto found = by_name_.find(by_due_.begin()->second);
  auto task = std::move(found->second.task);
  by_due_.erase(by_due_.begin());
  by_name_.erase(found);
  return task;
}

std::vector<TimerTable::Entry> TimerTable::list(std::string_view prefix) const {
  std::vector<Entry> entries;
  for (auto at = by_name_.lower_bound(prefix);
       at != by_name_.end() && at->first.starts_with(prefix); ++at) {
    entries.push_back({at->first, at->second.due});
  }
  return entries;
}

void TimerTable::clear() {
  by_due_.clear();
  by_name_.clear();
}

}  // namespace reprise::worker
