// DeadLetters: events that were given up, one envelope each (docs/spool.md, "Dead letters").
// An envelope is written and synced before its event leaves the queue, so a crash in between leaves
// both; the next burial or retry of it takes that for what it is.
// Threads: one owner; other processes may work on the same directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "spool/event.h"
#include "spool/spool_files.h"

namespace reprise::spool {

enum class DeathReason : std::uint8_t { max_attempts, too_large, corrupt };
std::string_view death_reason_name(DeathReason reason);

// A dead letter as it is listed.
struct DeadLetter {
  std::string name;  // of its file: "01J….json", or "01J….raw" when the envelope is missing
  std::string id;    // the event's; without one the name without its ending
  std::string type;  // empty: not known
  std::uint32_t attempts = 0;
  std::string last_error;
  std::string dead_lettered_at;  // ISO 8601; of a file without an envelope its last change
  std::string reason;            // empty: not known
  bool has_envelope = true;
  // Why it cannot be put back ("corrupt: …"); empty: it can.
  std::string cannot_retry;
};

struct DeadLetterFilter {
  std::optional<std::string> type;   // a pattern, * stands for anything
  std::optional<std::string> error;  // part of the last error, any case
  std::optional<std::string> reason;
  std::optional<Timestamp> before;  // dead-lettered before
  std::optional<Timestamp> after;

  bool any() const { return type || error || reason || before || after; }
  bool fits(const DeadLetter& letter) const;
};

class DeadLetters {
 public:
  // `files` must outlive it.
  explicit DeadLetters(SpoolFiles& files) : files_(files) {}

  // Buries the event of queue/`name`, whose content was `event`. On an error it is still in the
  // queue.
  Status bury(const std::string& name, const SpooledEvent& event, DeathReason reason,
              std::string_view last_error, Timestamp now);
  // The same for a file that is no event or too large to be read: its bytes are kept as they are.
  Status bury_raw(const std::string& name, DeathReason reason, std::string_view last_error,
                  Timestamp now);

  // Newest first. Files that cannot be read are in `warnings`.
  Result<std::vector<DeadLetter>> list(std::vector<std::string>& warnings) const;
  // The envelope's text as it is stored; of a file without one its bytes, as far as they are text.
  Result<std::string> show(const DeadLetter& letter) const;
  // The first bytes of what is no event; empty: there is none such.
  std::string raw_head(const DeadLetter& letter, std::size_t max_bytes) const;

  // Puts an event back, without bookkeeping: stored in the queue first, then taken from here. An
  // event that is in the queue already (a retry that was cut off) stays as it is there.
  // False: the dead letter was not there any more.
  Result<bool> retry(const DeadLetter& letter);
  Result<bool> purge(const DeadLetter& letter);

 private:
  Status leave_queue(const std::string& name, const std::vector<std::string>& made);

  SpoolFiles& files_;
};

}  // namespace reprise::spool
