#include "support/unsynced_writes.h"

#include <algorithm>
#include <set>
#include <utility>

namespace reprise::test {
namespace {

constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kPageBytes = 4096;

bool coin(SeededRandom& random) { return random.below(2) == 0; }

std::uint64_t next_boundary(std::uint64_t offset, std::uint64_t unit) {
  return (offset / unit + 1) * unit;
}

}  // namespace

std::string loss_name(Loss loss) {
  switch (loss) {
    case Loss::all:
      return "All";
    case Loss::tail:
      return "Tail";
    case Loss::pages:
      return "Pages";
  }
  return "Unknown";
}

void UnsyncedWrites::grew(std::uint64_t from, std::uint64_t to, Cut cut) {
  if (from == to) return;
  if (cut == Cut::anywhere && !changes_.empty()) {  // an append to an append
    Change& last = changes_.back();
    if (last.is_growth() && last.cut == cut && last.end == from && !last.given_up) {
      last.end = to;
      return;
    }
  }
  changes_.push_back({.begin = from, .end = to, .before = {}, .cut = cut});
}

void UnsyncedWrites::overwrote(std::uint64_t offset, std::string before) {
  if (before.empty()) return;
  const std::uint64_t end = offset + before.size();
  changes_.push_back({.begin = offset, .end = end, .before = std::move(before)});
}

void UnsyncedWrites::shrank(std::uint64_t size) {
  std::erase_if(changes_, [&](const Change& change) { return change.begin >= size; });
  for (Change& change : changes_) {
    change.end = std::min(change.end, size);
    if (!change.is_growth()) change.before.resize(change.end - change.begin);
  }
}

void UnsyncedWrites::synced() {
  std::set<std::uint64_t> rewritten;  // sectors
  bool growth_given_up = false;
  for (const Change& change : changes_) {
    if (change.is_growth()) {
      growth_given_up |= change.given_up;
    } else if (!change.given_up) {
      for (std::uint64_t at = change.begin; at < change.end; at = next_boundary(at, kSectorBytes)) {
        rewritten.insert(at / kSectorBytes);
      }
    }
  }
  std::vector<Change> left;
  for (Change& change : changes_) {
    if (change.is_growth()) {
      if (growth_given_up) left.push_back(std::move(change));
    } else if (change.given_up) {
      for (std::uint64_t at = change.begin; at < change.end;) {
        const std::uint64_t end = std::min(next_boundary(at, kSectorBytes), change.end);
        if (!rewritten.contains(at / kSectorBytes)) {
          left.push_back({.begin = at,
                          .end = end,
                          .before = change.before.substr(at - change.begin, end - at),
                          .given_up = true});
        }
        at = end;
      }
    }
  }
  changes_ = std::move(left);
}

void UnsyncedWrites::sync_failed() {
  for (Change& change : changes_) change.given_up = true;
}

std::string UnsyncedWrites::after_power_cut(std::string content, Loss loss,
                                            SeededRandom& random) const {
  if (changes_.empty()) return content;
  if (loss == Loss::all) {
    take_back_all(content);
  } else if (loss == Loss::tail) {
    take_back_tail(content, random);
  } else {
    std::string durable = content;
    take_back_all(durable);
    if (coin(random)) take_back_tail(content, random);
    take_back_pages(content, durable, random);
  }
  return content;
}

// Where to tear this write: what is before that place stays.
std::uint64_t UnsyncedWrites::Change::random_place(SeededRandom& random) const {
  if (cut == Cut::anywhere) return begin + random.below(end - begin + 1);
  const std::uint64_t sectors = (end - 1) / kSectorBytes - begin / kSectorBytes + 1;
  const std::uint64_t kept = random.below(sectors + 1);
  if (kept == 0) return begin;
  return std::min((begin / kSectorBytes + kept) * kSectorBytes, end);
}

void UnsyncedWrites::Change::take_back(std::string& content, std::uint64_t from) const {
  if (is_growth()) {
    content.resize(std::min<std::uint64_t>(content.size(), from));
  } else {
    content.replace(from, end - from, before, from - begin, end - from);
  }
}

void UnsyncedWrites::take_back_all(std::string& content) const {
  for (auto at = changes_.rbegin(); at != changes_.rend(); ++at) at->take_back(content, at->begin);
}

// Some write is torn, and those after it never happened.
void UnsyncedWrites::take_back_tail(std::string& content, SeededRandom& random) const {
  const std::size_t torn = random.below(changes_.size());
  for (std::size_t i = changes_.size() - 1; i > torn; --i) {
    changes_[i].take_back(content, changes_[i].begin);
  }
  changes_[torn].take_back(content, changes_[torn].random_place(random));
}

// What had no bytes before reads as zeros.
void UnsyncedWrites::take_back_pages(std::string& content, const std::string& durable,
                                     SeededRandom& random) const {
  const bool in_place = std::any_of(changes_.begin(), changes_.end(),
                                    [](const Change& change) { return !change.is_growth(); });
  const std::uint64_t unit = in_place && coin(random) ? kSectorBytes : kPageBytes;
  std::set<std::uint64_t> touched;
  for (const Change& change : changes_) {
    for (std::uint64_t at = change.begin; at < change.end; at = next_boundary(at, unit)) {
      touched.insert(at / unit);
    }
  }
  for (const std::uint64_t number : touched) {
    const std::uint64_t begin = number * unit;
    const std::uint64_t end = std::min<std::uint64_t>(begin + unit, content.size());
    if (begin >= end || coin(random)) continue;
    for (std::uint64_t at = begin; at < end; ++at) {
      content[at] = at < durable.size() ? durable[at] : '\0';
    }
  }
}

}  // namespace reprise::test
