// Outbox: adding events, within the quota (docs/spool.md, "Adding" and "Quota").
// Threads: one owner; other processes may add, drain and purge at the same time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spool/spool_files.h"

namespace reprise::spool {

enum class WhenFull : std::uint8_t { refuse, drop_oldest };
// "refuse", "drop-oldest"
std::string_view when_full_name(WhenFull when_full);

// Kept in quota.json.
struct Quota {
  std::optional<std::uint64_t> max_events;
  std::optional<std::uint64_t> max_bytes;
  WhenFull when_full = WhenFull::refuse;
  std::uint64_t dropped = 0;  // events that it has cost so far
};
// No value: there is none. Errc::corrupt: quota.json cannot be understood; the message names it and
// the fix.
Result<std::optional<Quota>> read_quota(const SpoolFiles& files);

// What flags say about the quota; a field that was not given leaves its part as it is.
struct QuotaChange {
  // The inner nothing lifts the limit.
  std::optional<std::optional<std::uint64_t>> max_events;
  std::optional<std::optional<std::uint64_t>> max_bytes;
  std::optional<WhenFull> when_full;

  bool any() const { return max_events || max_bytes || when_full; }
};

struct Added {
  std::vector<std::string> already_there;  // names that are in the queue already
  std::uint64_t dropped = 0;               // older events that had to go
};

class Outbox {
 public:
  // `files` must outlive it.
  explicit Outbox(SpoolFiles& files) : files_(files) {}
  const SpoolFiles& files() const { return files_; }

  // Durable when it returns. Without any limit left there is no quota. Errc::invalid_field: only
  // `when_full` is given, and there is no quota that it could be about.
  Status change_quota(const QuotaChange& change);
  // All of them are durable when it returns, or, on an error, none is stored. Errc::spool_full: the
  // quota has no room for all of them; the message has the figures.
  // With WhenFull::drop_oldest a group that is beyond the quota by itself ends as if its events had
  // been added one by one: the first of them are dropped again.
  Result<Added> add(const std::vector<NewFile>& events);

 private:
  Result<Added> add_within(const SpoolFiles::Writing& alone, Quota quota,
                           const std::vector<NewFile>& events);
  Status drop(const SpoolFiles::Writing& alone, Quota& quota,
              const std::vector<std::string>& queued, std::uint64_t unborn, Added& added);

  SpoolFiles& files_;
};

}  // namespace reprise::spool
