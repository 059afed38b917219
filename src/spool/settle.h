// Settler: what becomes of an event's file, and where the event counts (docs/spool.md, "Draining",
// 2, 3, 4 and 9). Invariants: `result.remaining` goes down by one whenever an event gets into
// another count, or turns out to be gone; a file that cannot be changed stays, is told, and
// remains. Threads: one owner.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "spool/dead_letters.h"
#include "spool/drain.h"
#include "spool/event.h"
#include "spool/ingest_reply.h"
#include "spool/removals.h"
#include "spool/spool_files.h"

namespace reprise::spool {

struct QueuedEvent {
  std::string name;  // of its file
  SpooledEvent event;
};

class Settler {
 public:
  struct Parts {
    SpoolFiles& files;
    Removals& removals;
    const Clock& clock;
    const Pauses& pauses;
    std::function<void(const std::string& text)> warn;
  };
  // `result.remaining` is what was found. It is written until the end of the Settler.
  Settler(Parts parts, std::uint32_t max_attempts, DrainResult& result)
      : parts_(std::move(parts)),
        max_attempts_(max_attempts),
        dead_letters_(parts_.files),
        result_(result) {}

  // Files that are not sent.
  void vanished(const std::string& name);
  void unreadable(const std::string& name, const std::string& problem);
  void corrupt(const std::string& name, const std::string& problem);
  void too_large(const std::string& name, std::uint64_t bytes);
  void too_large(const QueuedEvent& queued);
  void used_up(const QueuedEvent& queued);
  // The endpoint has it, but its file is still there.
  void not_removed(const std::string& name, const std::string& problem);

  // After an answer: verdicts[i] is about events[i], which was sent at `sent_at`. False: an
  // interrupt came first; all is settled but some of those that must die.
  bool settle(const std::vector<const QueuedEvent*>& events,
              const std::vector<EventVerdict>& verdicts, Timestamp sent_at);

 private:
  void taken(const QueuedEvent& queued, std::uint64_t& count);
  // What is to be written to the files of the rejected ones, all of them at once.
  void count_attempts(const std::vector<NewFile>& tried);
  // Counts in `count` once it is buried.
  void buried(const std::string& name, const Status& outcome, std::uint64_t& count);
  void local_failure(const std::string& name, std::string_view what, const std::string& problem);

  const Parts parts_;
  const std::uint32_t max_attempts_;
  DeadLetters dead_letters_;
  DrainResult& result_;
};

}  // namespace reprise::spool
