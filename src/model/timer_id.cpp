#include "model/timer_id.h"

#include <optional>

#include "base/text.h"
#include "model/limits.h"

namespace reprise {
namespace {

constexpr std::string_view kPoll = "queue-poll:";
constexpr std::string_view kRetry = "queue-retry:";

Error not_a_timer(std::string_view text) {
  return {Errc::invalid_field, "'" + std::string(cut_at_character(text, 64)) +
                                   "' is no timer: queue-poll:NAMESPACE/WORKER or "
                                   "queue-retry:NAMESPACE/QUEUE:ID"};
}

// What stands before the first `mark`, which goes with it; nothing when there is none.
std::optional<std::string_view> take_until(std::string_view& rest, char mark) {
  const std::size_t end = rest.find(mark);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return taken;
}

}  // namespace

std::string TimerId::to_text() const {
  if (kind == Kind::queue_poll) return std::string(kPoll) + ns + "/" + name;
  return std::string(kRetry) + ns + "/" + name + ":" + encode_job_id(job);
}

Result<TimerId> TimerId::parse(std::string_view text) {
  TimerId id;
  std::string_view rest = text;
  if (rest.starts_with(kPoll)) {
    rest.remove_prefix(kPoll.size());
  } else if (rest.starts_with(kRetry)) {
    id.kind = Kind::queue_retry;
    rest.remove_prefix(kRetry.size());
  } else {
    return not_a_timer(text);
  }
  const auto ns = take_until(rest, '/');
  if (!ns) return not_a_timer(text);
  id.ns = *ns;
  if (id.kind == Kind::queue_retry) {
    const auto queue = take_until(rest, ':');
    // One spelling each: decoding would take small letters and look-alikes as well.
    const auto job = decode_job_id(rest);
    if (!queue || !job || *job == 0 || encode_job_id(*job) != rest) return not_a_timer(text);
    id.name = *queue;
    id.job = *job;
  } else {
    id.name = rest;
  }
  if (!check_name("namespace", id.ns) || !check_name("timer", id.name)) return not_a_timer(text);
  return id;
}

}  // namespace reprise
