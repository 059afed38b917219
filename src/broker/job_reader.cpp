#include "broker/job_reader.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "broker/endings.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::Keyspace;
using Cursor = storage::Storage::Cursor;
using Snapshot = storage::Storage::Snapshot;

constexpr std::size_t kMatchesShown = 10;
constexpr std::size_t kPrefixCandidatesMax = 10'000;
constexpr int kJobsLookedAtMax = 20'000;
constexpr std::size_t kNewestStep = 100;

Error bad_cursor() { return Error{Errc::invalid_field, "cursor: not one that a page gave"}; }

Keyspace keyspace_of_ended(JobStatus status) {
  return status == JobStatus::completed ? Keyspace::completed : Keyspace::dead;
}

storage::EndKind end_kind(JobStatus status) {
  return status == JobStatus::completed ? storage::EndKind::completed : storage::EndKind::dead;
}

// Two ids' worth of digits: the time, then the seq.
std::string encode_ending_cursor(const storage::EndingKey& last) {
  return encode_job_id(static_cast<Seq>(last.at.time_since_epoch().count())) +
         encode_job_id(last.seq);
}

std::optional<storage::EndingKey> decode_ending_cursor(std::string_view text) {
  if (text.size() != 2 * kJobIdChars) return std::nullopt;
  const auto at = decode_job_id(text.substr(0, kJobIdChars));
  const auto seq = decode_job_id(text.substr(kJobIdChars));
  if (!at || !seq) return std::nullopt;
  return storage::EndingKey{.at = Timestamp(Duration(static_cast<std::int64_t>(*at))), .seq = *seq};
}

// A job that cannot be decoded is shown as what it is, with the reason, rather than left out.
JobView damaged_view(Seq seq, JobStatus status, std::string_view bytes, const Error& why) {
  auto record = std::make_shared<JobRecord>();
  record->payload_kind = PayloadKind::bytes;
  record->payload = std::string(bytes);
  auto state = std::make_shared<JobState>();
  state->status = status;
  state->last_error = "cannot be read: " + why.detail;
  return {seq, status, std::move(record), std::move(state)};
}

JobView alive_view(Seq seq, std::string_view record_bytes, std::string_view state_bytes,
                   Timestamp now) {
  auto record = storage::decode_job(record_bytes);
  if (!record) return damaged_view(seq, JobStatus::pending, record_bytes, record.error());
  StatePtr state;
  if (!state_bytes.empty()) {
    auto decoded = storage::decode_state(state_bytes);
    if (!decoded) return damaged_view(seq, JobStatus::pending, record_bytes, decoded.error());
    state = std::make_shared<const JobState>(std::move(*decoded));
  }
  return {seq, effective_status(state.get(), now),
          std::make_shared<const JobRecord>(std::move(*record)), std::move(state)};
}

JobView ended_view(Seq seq, JobStatus status, std::string_view bytes) {
  auto ended = storage::decode_ended(bytes);
  if (!ended) return damaged_view(seq, status, bytes, ended.error());
  return {seq, status, std::move(ended->record), std::move(ended->state)};
}

bool is_selected(const JobView& job, const JobFilter& filter, Timestamp now) {
  return (!filter.status || job.status == *filter.status) &&
         matches(filter, *job.record, job.state.get(), now);
}

// Walks a queue's jobs in push order over the keyspaces that a filter can find anything in. Jobs
// that are fresh and pending have no state, so for every other status the states are the shorter
// list to walk.
class JobWalk {
 public:
  JobWalk(const Snapshot& snapshot, QueueNumber queue, Seq after, const JobFilter& filter)
      : snapshot_(snapshot) {
    const std::string begin = storage::job_key({queue, after + 1});
    const std::string end = storage::queue_end(queue);
    const bool retries_only = filter.lane == Lane::retry || filter.reason || filter.fingerprint ||
                              !filter.error.empty() || !filter.error_type.empty();
    const bool has_state = retries_only || (filter.status && *filter.status != JobStatus::pending);
    if (filter.status == JobStatus::completed) {
      ended_ = snapshot.cursor(Keyspace::completed, begin, end);
      ended_status_ = JobStatus::completed;
      return;
    }
    if (filter.status != JobStatus::dead) {
      states_ = snapshot.cursor(Keyspace::states, begin, end);
      if (!has_state) jobs_ = snapshot.cursor(Keyspace::jobs, begin, end);
    }
    if (!filter.status || filter.status == JobStatus::dead) {
      ended_ = snapshot.cursor(Keyspace::dead, begin, end);
    }
  }

  // The next job; nullopt at the end. An error of storage ends the walk too.
  Result<std::optional<JobView>> next(Timestamp now) {
    Cursor* alive = jobs_ ? jobs_.get() : states_.get();
    const bool has_alive = alive != nullptr && alive->valid();
    const bool has_ended = ended_ != nullptr && ended_->valid();
    if (has_ended && (!has_alive || ended_->key() < alive->key())) {
      const Seq seq = storage::parse_job_key(ended_->key())->seq;
      JobView view = ended_view(seq, ended_status_, ended_->value());
      ended_->next();
      return std::optional(std::move(view));
    }
    if (has_alive) return next_alive(now);
    for (const Cursor* cursor : {jobs_.get(), states_.get(), ended_.get()}) {
      if (cursor != nullptr) REPRISE_TRY(cursor->status());
    }
    return std::optional<JobView>{};
  }

 private:
  Result<std::optional<JobView>> next_alive(Timestamp now) {
    Cursor& at = jobs_ ? *jobs_ : *states_;
    const std::string key(at.key());
    const Seq seq = storage::parse_job_key(key)->seq;
    std::string state_bytes;
    if (states_->valid() && states_->key() == key) state_bytes = states_->value();
    std::string record_bytes;
    if (jobs_) {
      record_bytes = jobs_->value();
    } else {
      const auto stored = snapshot_.get(Keyspace::jobs, key);
      if (!stored) return stored.error();
      record_bytes = stored->value_or(std::string());
    }
    if (!state_bytes.empty()) states_->next();
    if (jobs_) jobs_->next();
    return std::optional(alive_view(seq, record_bytes, state_bytes, now));
  }

  const Snapshot& snapshot_;
  std::unique_ptr<Cursor> jobs_;
  std::unique_ptr<Cursor> states_;
  std::unique_ptr<Cursor> ended_;
  JobStatus ended_status_ = JobStatus::dead;
};

}  // namespace

Result<Seq> JobReader::resolve(std::string_view id, Seq seq_end) const {
  const Error not_found{Errc::job_not_found,
                        "no job '" + std::string(cut_at_character(id, 32)) + "' in this queue"};
  if (id.size() == kJobIdChars) {
    const auto seq = decode_job_id(id);
    if (!seq) return Error{Errc::invalid_field, "id: '" + std::string(id) + "' is not a job's id"};
    return *seq;
  }
  if (id.size() < kIdPrefixMin) {
    return Error{Errc::invalid_field, "id: a prefix needs at least 4 characters"};
  }
  const auto candidates = seqs_with_id_prefix(id, seq_end, kPrefixCandidatesMax);
  if (!candidates) {
    return Error{Errc::invalid_field, "id: '" + std::string(cut_at_character(id, 32)) +
                                          "' is not a job's id or a part of one"};
  }
  std::vector<std::string> found;
  Seq first{};
  for (const Seq seq : *candidates) {
    const std::string key = storage::job_key({queue_, seq});
    for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::dead, Keyspace::completed}) {
      const auto stored = storage_.get(keyspace, key);
      if (!stored) return stored.error();
      if (!*stored) continue;
      if (found.empty()) first = seq;
      found.push_back(encode_job_id(seq));
    }
    if (found.size() >= kMatchesShown) break;
  }
  if (found.empty()) return not_found;
  if (found.size() == 1) return first;
  std::string detail = "id: '" + std::string(id) + "' fits several jobs:";
  for (const std::string& match : found) detail += " " + match;
  return Error{Errc::ambiguous_id, std::move(detail), std::move(found)};
}

Result<JobView> JobReader::show(Seq seq, Timestamp now) const {
  const auto snapshot = storage_.snapshot();
  const std::string key = storage::job_key({queue_, seq});
  const auto record = snapshot->get(Keyspace::jobs, key);
  if (!record) return record.error();
  if (*record) {
    const auto state = snapshot->get(Keyspace::states, key);
    if (!state) return state.error();
    return alive_view(seq, **record, state->value_or(std::string()), now);
  }
  for (const JobStatus status : {JobStatus::dead, JobStatus::completed}) {
    const auto ended = snapshot->get(keyspace_of_ended(status), key);
    if (!ended) return ended.error();
    if (*ended) return ended_view(seq, status, **ended);
  }
  return Error{Errc::job_not_found, "no job " + encode_job_id(seq) +
                                        " in this queue: finished, dropped, or never there"};
}

Result<BrowsePage> JobReader::browse(const BrowseQuery& query, Timestamp now) const {
  return query.order == BrowseOrder::newest ? browse_newest(query, now) : browse_pushed(query, now);
}

Result<BrowsePage> JobReader::browse_pushed(const BrowseQuery& query, Timestamp now) const {
  Seq last = 0;
  if (!query.cursor.empty()) {
    const auto after = decode_job_id(query.cursor);
    if (!after) return bad_cursor();
    last = *after;
  }
  const auto snapshot = storage_.snapshot();
  JobWalk walk(*snapshot, queue_, last, query.filter);
  BrowsePage page;
  for (int looked_at = 0; looked_at < kJobsLookedAtMax; ++looked_at) {
    auto job = walk.next(now);
    if (!job) return job.error();
    if (!*job) return page;
    if (page.jobs.size() == query.limit) break;  // there is more: the cursor stays before it
    last = (*job)->seq;
    if (is_selected(**job, query.filter, now)) page.jobs.push_back(std::move(**job));
  }
  page.cursor = encode_job_id(last);
  return page;
}

Result<BrowsePage> JobReader::browse_newest(const BrowseQuery& query, Timestamp now) const {
  const JobStatus status = query.filter.status.value_or(JobStatus::dead);
  const auto snapshot = storage_.snapshot();
  const Endings endings(*snapshot, queue_, end_kind(status));
  storage::EndingKey before = endings.from(now + Duration(1));
  if (!query.cursor.empty()) {
    const auto last = decode_ending_cursor(query.cursor);
    if (!last) return bad_cursor();
    before.at = last->at;
    before.seq = last->seq;
  }
  BrowsePage page;
  // One more than the page holds tells whether there is another.
  const std::size_t step = std::max<std::size_t>(query.limit + 1, kNewestStep);
  for (int looked_at = 0; looked_at < kJobsLookedAtMax;) {
    const auto found = endings.newest(before, step);
    if (!found) return found.error();
    for (const Ended& ended : *found) {
      if (page.jobs.size() == query.limit) {
        page.cursor = encode_ending_cursor(before);
        return page;
      }
      before = ended.key;
      ++looked_at;
      if (query.filter.fingerprint && ended.fingerprint != *query.filter.fingerprint) continue;
      const auto bytes =
          snapshot->get(keyspace_of_ended(status), storage::job_key({queue_, ended.key.seq}));
      if (!bytes) return bytes.error();
      if (!*bytes) continue;  // dropped although it could not be read
      JobView view = ended_view(ended.key.seq, status, **bytes);
      if (matches(query.filter, *view.record, view.state.get(), now)) {
        page.jobs.push_back(std::move(view));
      }
    }
    if (found->size() < step) return page;
  }
  page.cursor = encode_ending_cursor(before);
  return page;
}

}  // namespace reprise
