#include "broker/selection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "broker/endings.h"
#include "broker/job_reader.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::EndingKey;
using storage::Keyspace;
using Snapshot = storage::Storage::Snapshot;

constexpr std::size_t kLookedAtMax = 5'000;
constexpr std::size_t kEndingsPerRead = 500;
constexpr std::size_t kExamplesTold = 10;

// A cursor is which of the two lists, and a place in it. Text, as it is stored in JSON.
constexpr char kInDead = 'd';
constexpr char kInStates = 's';

std::string dead_cursor(const EndingKey& last) {
  return kInDead + encode_job_id(static_cast<Seq>(last.at.time_since_epoch().count())) +
         encode_job_id(last.seq);
}

std::string states_cursor(Seq last) { return kInStates + encode_job_id(last); }

struct Place {
  bool in_states = false;
  Timestamp at{};  // of the last dead job
  Seq seq{};       // the last job
};

std::optional<Place> parse_cursor(std::string_view cursor) {
  if (cursor.empty()) return Place{};
  const char list = cursor.front();
  cursor.remove_prefix(1);
  if (list == kInStates) {
    const auto seq = decode_job_id(cursor);
    return seq ? std::optional(Place{.in_states = true, .seq = *seq}) : std::nullopt;
  }
  if (list != kInDead || cursor.size() != 2 * kJobIdChars) return std::nullopt;
  const auto at = decode_job_id(cursor.substr(0, kJobIdChars));
  const auto seq = decode_job_id(cursor.substr(kJobIdChars));
  if (!at || !seq) return std::nullopt;
  return Place{.at = Timestamp(Duration(static_cast<std::int64_t>(*at))), .seq = *seq};
}

class Selection {
 public:
  Selection(const Snapshot& snapshot, const Operation& operation, std::size_t most)
      : snapshot_(snapshot), operation_(operation), most_(most) {}

  Result<SelectedPage> page() {
    const auto place = parse_cursor(operation_.cursor);
    if (!place) return Error{Errc::corrupt, "the operation's cursor is damaged"};
    const bool wants_dead = operation_.filter.status != JobStatus::failed;
    if (wants_dead && !place->in_states) {
      REPRISE_TRY(take_dead(*place));
      if (is_full()) return std::move(page_);
    }
    // The dead are dealt with; of the others only a retry can want any.
    const bool wants_states =
        operation_.kind == OperationKind::retry && operation_.filter.status != JobStatus::dead;
    if (wants_states) {
      REPRISE_TRY(take_from_states(place->in_states ? place->seq : 0));
      if (is_full()) return std::move(page_);
    }
    page_.finished = true;
    return std::move(page_);
  }

 private:
  bool is_full() const { return page_.jobs.size() >= most_ || looked_at_ >= kLookedAtMax; }

  // A time filter bounds what has to be looked at. Ages are those at the operation's start.
  Status take_dead(const Place& place) {
    const JobFilter& filter = operation_.filter;
    const Endings endings(snapshot_, operation_.queue, storage::EndKind::dead);
    EndingKey from = endings.from(Timestamp{});
    if (filter.newer_than) from.at = operation_.started_at - *filter.newer_than + Duration(1);
    if (place.at != Timestamp{}) from = {from.queue, from.kind, place.at, place.seq + 1};
    const EndingKey to = endings.from(filter.older_than ? operation_.started_at - *filter.older_than
                                                        : operation_.started_at + Duration(1));
    while (from < to) {
      const auto found = endings.oldest(from, to, kEndingsPerRead);
      if (!found) return found.error();
      for (const Ended& ended : *found) {
        if (is_full()) return ok();
        ++looked_at_;
        page_.cursor = dead_cursor(ended.key);
        const auto is_selected = selects(ended);
        if (!is_selected) return is_selected.error();
        if (*is_selected) page_.jobs.push_back(ended.key.seq);
        from = ended.key;
        ++from.seq;
      }
      if (found->size() < kEndingsPerRead) return ok();
    }
    return ok();
  }

  Result<bool> selects(const Ended& ended) const {
    const JobFilter& filter = operation_.filter;
    if (filter.fingerprint && ended.fingerprint != *filter.fingerprint) return false;
    if (!filter.needs_job()) return true;
    const auto bytes =
        snapshot_.get(Keyspace::dead, storage::job_key({operation_.queue, ended.key.seq}));
    if (!bytes) return bytes.error();
    const auto dead = storage::decode_ended(bytes->value_or(std::string()));
    return dead && matches(filter, *dead->record, dead->state.get(), operation_.started_at);
  }

  // Jobs that cool down, if those are wanted; else those that came from another queue.
  Status take_from_states(Seq after) {
    const auto cursor =
        snapshot_.cursor(Keyspace::states, storage::job_key({operation_.queue, after + 1}),
                         storage::queue_end(operation_.queue));
    for (; cursor->valid() && !is_full(); cursor->next()) {
      const auto key = storage::parse_job_key(cursor->key());
      const auto state = storage::decode_state(cursor->value());
      ++looked_at_;
      if (key) page_.cursor = states_cursor(key->seq);
      if (!key || !state || !is_wanted(*state)) continue;
      const auto record = snapshot_.get(Keyspace::jobs, cursor->key());
      if (!record) return record.error();
      const auto job = storage::decode_job(record->value_or(std::string()));
      if (job && matches(operation_.filter, *job, &*state, operation_.started_at)) {
        page_.jobs.push_back(key->seq);
      }
    }
    return cursor->status();
  }

  bool is_wanted(const JobState& state) const {
    const JobStatus status = effective_status(&state, operation_.started_at);
    if (operation_.filter.status == JobStatus::failed) {
      // One that failed again since is not what was meant.
      return state.status == JobStatus::failed && status == JobStatus::failed &&
             !state.history.empty() && state.history.back().ended_at <= operation_.started_at;
    }
    return !state.origin_queue.empty() && status == JobStatus::pending &&
           state.returned_at <= operation_.started_at;
  }

  const Snapshot& snapshot_;
  const Operation& operation_;
  const std::size_t most_;
  SelectedPage page_;
  std::size_t looked_at_ = 0;
};

}  // namespace

Result<SelectedPage> select_page(const storage::Storage& storage, const Operation& operation,
                                 std::size_t most) {
  const auto snapshot = storage.snapshot();
  auto page = Selection(*snapshot, operation, most).page();
  if (page && page->cursor.empty()) page->cursor = operation.cursor;
  return page;
}

Result<SelectionPreview> preview_selection(const storage::Storage& storage,
                                           const Operation& operation) {
  SelectionPreview preview;
  Operation looking = operation;
  const std::uint64_t most = operation.left();
  while (preview.matched < most) {
    const auto page = select_page(storage, looking,
                                  std::min<std::uint64_t>(kLookedAtMax, most - preview.matched));
    if (!page) return page.error();
    for (const Seq seq : page->jobs) {
      ++preview.matched;
      if (preview.examples.size() == kExamplesTold) continue;
      const auto job = JobReader(storage, operation.queue).show(seq, operation.started_at);
      if (job) preview.examples.push_back(*job);
    }
    looking.cursor = page->cursor;
    if (page->finished) break;
  }
  return preview;
}

}  // namespace reprise
