#include "spool/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace reprise::spool {
namespace {

constexpr std::string_view kCorruptHead = "Corrupt event file: ";
constexpr std::string_view kNoWords = "rejected without a reason";

std::string too_large_text(std::uint64_t bytes) {
  return fmt::format("{} are more than a batch can hold ({})", format_bytes(bytes),
                     format_bytes(kMaxBatchBytes));
}

SpooledEvent after_rejection(SpooledEvent event, const std::string& words, Timestamp sent_at) {
  ++event.attempts;
  if (event.first_attempt_at.empty()) event.first_attempt_at = format_timestamp(sent_at);
  event.last_error = words.empty() ? kNoWords : words;
  return event;
}

}  // namespace

void Settler::local_failure(const std::string& name, std::string_view what,
                            const std::string& problem) {
  ++result_.local_failures;
  parts_.warn(fmt::format("queue/{} {}: {}", name, what, problem));
}

// Somebody else has taken it: it is none of those found any more.
void Settler::vanished(const std::string& name) {
  --result_.remaining;
  parts_.warn(fmt::format("queue/{} was there a moment ago and is gone", name));
}

void Settler::unreadable(const std::string& name, const std::string& problem) {
  local_failure(name, "cannot be read and is left alone", problem);
}

void Settler::buried(const std::string& name, const Status& outcome, std::uint64_t& count) {
  if (!outcome) {
    local_failure(name, "cannot be dead-lettered and stays queued", outcome.error().detail);
    return;
  }
  ++count;
  --result_.remaining;
}

void Settler::corrupt(const std::string& name, const std::string& problem) {
  buried(name,
         dead_letters_.bury_raw(name, DeathReason::corrupt, std::string(kCorruptHead) + problem,
                                parts_.clock.now()),
         result_.corrupt);
}

void Settler::too_large(const std::string& name, std::uint64_t bytes) {
  buried(name,
         dead_letters_.bury_raw(name, DeathReason::too_large, too_large_text(bytes),
                                parts_.clock.now()),
         result_.dead_lettered);
}

void Settler::too_large(const QueuedEvent& queued) {
  buried(queued.name,
         dead_letters_.bury(queued.name, queued.event, DeathReason::too_large,
                            too_large_text(queued.event.json.size()), parts_.clock.now()),
         result_.dead_lettered);
}

void Settler::used_up(const QueuedEvent& queued) {
  const std::string& known = queued.event.last_error;
  buried(queued.name,
         dead_letters_.bury(queued.name, queued.event, DeathReason::max_attempts,
                            known.empty() ? std::string(kNoWords) : known, parts_.clock.now()),
         result_.dead_lettered);
}

bool Settler::settle(const std::vector<const QueuedEvent*>& events,
                     const std::vector<EventVerdict>& verdicts, Timestamp sent_at) {
  std::vector<NewFile> tried;
  std::vector<QueuedEvent> dying;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const QueuedEvent& queued = *events[i];
    if (verdicts[i].verdict == Verdict::accepted) taken(queued, result_.accepted);
    if (verdicts[i].verdict == Verdict::duplicate) taken(queued, result_.duplicates);
    if (verdicts[i].verdict != Verdict::rejected) continue;
    QueuedEvent rejected{queued.name, after_rejection(queued.event, verdicts[i].error, sent_at)};
    if (rejected.event.attempts < max_attempts_) {
      tried.push_back({.name = queued.name, .content = event_file_text(rejected.event)});
    } else {
      dying.push_back(std::move(rejected));
    }
  }
  count_attempts(tried);
  for (const QueuedEvent& queued : dying) {
    if (parts_.pauses.interrupted()) return false;
    used_up(queued);
  }
  return true;
}

// The endpoint has it, whatever becomes of the file: that it is known by its id is what makes
// sending it again harmless.
void Settler::taken(const QueuedEvent& queued, std::uint64_t& count) {
  ++count;
  --result_.remaining;
  parts_.removals.add(queued.name);
}

void Settler::not_removed(const std::string& name, const std::string& problem) {
  local_failure(name, "was taken by the endpoint but cannot be removed, so it is sent again",
                problem);
}

void Settler::count_attempts(const std::vector<NewFile>& tried) {
  if (tried.empty()) return;
  const auto writing = parts_.files.write_shared();
  auto vanished_names = writing ? parts_.files.replace_all(*writing, Folder::queue, tried)
                                : Result<std::vector<std::string>>(writing.error());
  for (const NewFile& file : tried) {
    if (!vanished_names) {
      local_failure(file.name, "was rejected, which cannot be written down",
                    vanished_names.error().detail);
    } else if (std::ranges::find(*vanished_names, file.name) != vanished_names->end()) {
      vanished(file.name);
    } else {
      ++result_.retried;
      result_.rejected_files.push_back(file.name);
    }
  }
}

}  // namespace reprise::spool
