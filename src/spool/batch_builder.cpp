#include "spool/batch_builder.h"

#include <utility>

namespace reprise::spool {

std::vector<QueuedEvent> BatchBuilder::next() {
  std::vector<QueuedEvent> batch;
  std::size_t bytes = kBatchHead.size() + kBatchTail.size();
  while (batch.size() < options_.batch) {
    auto queued = carried_ ? std::exchange(carried_, std::nullopt) : read_next();
    if (!queued) break;
    const std::size_t more = queued->event.json.size() + (batch.empty() ? 0 : 1);
    if (bytes + more > kMaxBatchBytes) {
      carried_ = std::move(queued);
      break;
    }
    bytes += more;
    batch.push_back(std::move(*queued));
  }
  return batch;
}

std::optional<QueuedEvent> BatchBuilder::read_next() {
  while (next_ < names_.size() && !pauses_.interrupted()) {
    auto queued = read_one(names_[next_++]);
    if (queued) return queued;
  }
  return std::nullopt;
}

std::optional<QueuedEvent> BatchBuilder::read_one(const std::string& name) {
  const FileContent content = files_.read(Folder::queue, name, kMaxEventFileBytes);
  switch (content.state) {
    case FileContent::State::vanished:
      settler_.vanished(name);
      return std::nullopt;
    case FileContent::State::unreadable:
      settler_.unreadable(name, content.problem);
      return std::nullopt;
    case FileContent::State::too_large:
      settler_.too_large(name, content.size);
      return std::nullopt;
    case FileContent::State::whole:
      break;
  }
  auto event = parse_event(content.bytes);
  if (!event) {
    settler_.corrupt(name, event.error().detail);
    return std::nullopt;
  }
  QueuedEvent queued{.name = name, .event = std::move(*event)};
  if (queued.event.json.size() > kMaxEventBytes) {
    settler_.too_large(queued);
  } else if (queued.event.attempts >= options_.max_attempts) {
    settler_.used_up(queued);
  } else {
    return queued;
  }
  return std::nullopt;
}

}  // namespace reprise::spool
