// Delivery: one batch on its way to the endpoint: tries with waits between them, and the search for
// the event that spoils a batch (docs/spool.md, "Draining", 5 and 6).
// Invariants: an event is settled at most once; what has no verdict when a delivery ends is as it
// was. Threads: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spool/answer_meaning.h"
#include "spool/drain.h"
#include "spool/settle.h"

namespace reprise::spool {

// The longest wait for an endpoint within a run.
inline constexpr Duration kMaxPatience = std::chrono::seconds(30);

struct Delivered {
  enum class End : std::uint8_t {
    done,
    failed,         // trouble, or not one event was settled
    too_long_wait,  // the endpoint asks for more than kMaxPatience
    refused,
    interrupted,
  };
  End end = End::done;
  bool some_settled = false;
  std::string reason;                // for people; unless it is done or interrupted
  std::optional<Duration> patience;  // what the endpoint asks for
};

class Delivery {
 public:
  // All of these must outlive it.
  Delivery(const Drain::Parts& parts, Settler& settler) : parts_(parts), settler_(settler) {}

  Delivered deliver(const std::vector<QueuedEvent>& batch);

 private:
  using Group = std::vector<const QueuedEvent*>;
  struct Exchange {
    IngestAnswer answer;
    Judgement judgement;
    Timestamp sent_at{};
    bool interrupted = false;
  };

  // Sends until there is an answer that is no trouble, or the tries are used up.
  Exchange exchange(const Group& group);
  bool wait_to_try_again(std::size_t tries, std::optional<Duration> patience);
  // These two return false when an interrupt has cut them off.
  bool settle(const Group& group, const std::vector<EventVerdict>& verdicts, Timestamp sent_at);
  // Some of `group` spoil it: settles those that it can tell, and has the others sent anew.
  bool isolate(const Group& group, const Exchange& refusal);
  bool reject_offenders(const Group& group, const std::vector<Offender>& offenders,
                        Timestamp sent_at);

  const Drain::Parts& parts_;
  Settler& settler_;
  std::vector<Group> to_send_;  // the next one last
  std::size_t settled_ = 0;     // of the batch
};

}  // namespace reprise::spool
