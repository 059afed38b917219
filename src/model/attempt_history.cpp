#include "model/attempt_history.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace reprise {
namespace {

// nullopt: damaged.
std::optional<AttemptView> read_attempt(ByteReader& in) {
  const std::uint64_t number = in.varint();
  const std::uint64_t generation = in.varint();
  const auto started_at = in.fixed<std::int64_t>();
  const auto ended_at = in.fixed<std::int64_t>();
  const auto outcome = in.fixed<std::uint8_t>();
  const std::string_view worker = in.bytes();
  const std::string_view error = in.bytes();
  const std::string_view error_type = in.bytes();
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const bool in_range = number <= kMost && generation <= kMost &&
                        outcome <= static_cast<std::uint8_t>(AttemptOutcome::buried);
  if (in.failed() || !in_range) return std::nullopt;
  return AttemptView{.number = static_cast<std::uint32_t>(number),
                     .generation = static_cast<std::uint32_t>(generation),
                     .started_at = Timestamp(Duration(started_at)),
                     .ended_at = Timestamp(Duration(ended_at)),
                     .outcome = static_cast<AttemptOutcome>(outcome),
                     .worker = worker,
                     .error = error,
                     .error_type = error_type};
}

// At once, since each of so many small pieces would cost more than its bytes.
void append_attempt(std::string& out, const AttemptView& attempt) {
  constexpr std::size_t kNumbersMax = 2 * 5 + 2 * 8 + 1;
  const std::size_t most = kNumbersMax + 3 * kVarintBytesMax + attempt.worker.size() +
                           attempt.error.size() + attempt.error_type.size();
  const std::size_t before = out.size();
  if (out.capacity() - before < most) out.reserve(std::max(2 * out.capacity(), before + most));
  out.resize(before + most);
  char* at = out.data() + before;
  at = write_varint(at, attempt.number);
  at = write_varint(at, attempt.generation);
  at = write_fixed(at, attempt.started_at.time_since_epoch().count());
  at = write_fixed(at, attempt.ended_at.time_since_epoch().count());
  at = write_fixed(at, static_cast<std::uint8_t>(attempt.outcome));
  for (const std::string_view text : {attempt.worker, attempt.error, attempt.error_type}) {
    at = write_varint(at, text.size());
    at = std::copy(text.begin(), text.end(), at);
  }
  out.resize(static_cast<std::size_t>(at - out.data()));
}

AttemptView view_of(const Attempt& attempt) {
  return {.number = attempt.number,
          .generation = attempt.generation,
          .started_at = attempt.started_at,
          .ended_at = attempt.ended_at,
          .outcome = attempt.outcome,
          .worker = attempt.worker,
          .error = attempt.error,
          .error_type = attempt.error_type};
}

Attempt copy_of(const AttemptView& view) {
  return {.number = view.number,
          .generation = view.generation,
          .started_at = view.started_at,
          .ended_at = view.ended_at,
          .outcome = view.outcome,
          .worker = std::string(view.worker),
          .error = std::string(view.error),
          .error_type = std::string(view.error_type)};
}

}  // namespace

std::string_view outcome_name(AttemptOutcome outcome) {
  switch (outcome) {
    case AttemptOutcome::failed:
      return "failed";
    case AttemptOutcome::lease_expired:
      return "lease_expired";
    case AttemptOutcome::released:
      return "released";
    case AttemptOutcome::worker_lost:
      return "worker_lost";
    case AttemptOutcome::completed:
      return "completed";
    case AttemptOutcome::buried:
      return "buried";
  }
  return "unknown";
}

AttemptHistory::AttemptHistory(std::span<const Attempt> attempts) {
  for (const Attempt& attempt : attempts) push_back(attempt);
}

std::optional<AttemptHistory> AttemptHistory::read(ByteReader& in, std::size_t count) {
  const std::string_view before = in.rest();
  for (std::size_t i = 0; i < count; ++i) {
    if (!read_attempt(in)) return std::nullopt;
  }
  AttemptHistory history;
  history.bytes_ = before.substr(0, before.size() - in.rest().size());
  history.count_ = count;
  return history;
}

void AttemptHistory::add(const AttemptView& attempt) {
  if (count_ >= kHistoryKept) {
    ByteReader in(bytes_);
    REPRISE_CHECK(read_attempt(in));
    const std::size_t second = bytes_.size() - in.rest().size();
    REPRISE_CHECK(read_attempt(in));
    bytes_.erase(second, bytes_.size() - in.rest().size() - second);
    --count_;
  }
  append_attempt(bytes_, attempt);
  ++count_;
}

void AttemptHistory::push_back(const Attempt& attempt) {
  append_attempt(bytes_, view_of(attempt));
  ++count_;
}

Attempt AttemptHistory::at(std::size_t place) const {
  REPRISE_CHECK(place < count_);
  Iterator found = begin();
  for (; place > 0; --place) ++found;
  return *found;
}

Attempt AttemptHistory::Iterator::operator*() const {
  ByteReader in(rest_);
  const auto attempt = read_attempt(in);
  REPRISE_CHECK(attempt);  // it was checked when it came
  return copy_of(*attempt);
}

AttemptHistory::Iterator& AttemptHistory::Iterator::operator++() {
  ByteReader in(rest_);
  REPRISE_CHECK(read_attempt(in));
  rest_ = in.rest();
  return *this;
}

}  // namespace reprise
