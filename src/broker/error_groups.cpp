// What the jobs of a queue died of, or cool down after, grouped.
#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "broker/endings.h"
#include "broker/selection.h"
#include "model/error_fingerprint.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::EndingKey;
using storage::Keyspace;
using Snapshot = storage::Storage::Snapshot;

constexpr std::size_t kEndingsPerRead = 2'000;
// Beyond so many, errors that were not met before are counted only.
constexpr std::size_t kGroupsMax = 10'000;

class Grouping {
 public:
  Grouping(const Snapshot& snapshot, QueueNumber queue) : snapshot_(snapshot), queue_(queue) {}

  Status add_dead() {
    const Endings endings(snapshot_, queue_, storage::EndKind::dead);
    EndingKey from = endings.from(Timestamp{});
    while (true) {
      const auto found = endings.oldest(from, endings.end(), kEndingsPerRead);
      if (!found) return found.error();
      for (const Ended& ended : *found) {
        if (ErrorGroup* group = add(ended.fingerprint, ended.key.seq, ended.key.at)) ++group->dead;
        from = ended.key;
        ++from.seq;
      }
      if (found->size() < kEndingsPerRead) return ok();
    }
  }

  Status add_failed(Timestamp now) {
    const auto cursor = snapshot_.cursor(Keyspace::states, storage::queue_begin(queue_),
                                         storage::queue_end(queue_));
    for (; cursor->valid(); cursor->next()) {
      const auto key = storage::parse_job_key(cursor->key());
      const auto state = storage::decode_state(cursor->value());
      if (!key || !state || effective_status(&*state, now) != JobStatus::failed) continue;
      const std::uint64_t fingerprint =
          error_fingerprint(state->last_error, state->last_error_type);
      const Timestamp at = state->history.empty() ? state->due : state->history.back().ended_at;
      if (ErrorGroup* group = add(fingerprint, key->seq, at)) ++group->failed;
    }
    return cursor->status();
  }

  Result<ErrorGroups> largest(std::size_t limit) {
    ErrorGroups result{.other = beyond_};
    for (auto& [fingerprint, group] : groups_) result.groups.push_back(std::move(group));
    std::ranges::sort(result.groups, [](const ErrorGroup& a, const ErrorGroup& b) {
      return std::pair(b.count(), a.fingerprint) < std::pair(a.count(), b.fingerprint);
    });
    while (result.groups.size() > limit) {
      result.other += result.groups.back().count();
      result.groups.pop_back();
    }
    for (ErrorGroup& group : result.groups) REPRISE_TRY(name(group));
    return result;
  }

 private:
  ErrorGroup* add(std::uint64_t fingerprint, Seq seq, Timestamp at) {
    auto found = groups_.find(fingerprint);
    if (found == groups_.end()) {
      if (groups_.size() >= kGroupsMax) {
        ++beyond_;
        return nullptr;
      }
      found = groups_.emplace(fingerprint, ErrorGroup{.fingerprint = fingerprint}).first;
    }
    ErrorGroup& group = found->second;
    group.first_seen = std::min(group.first_seen, at);
    if (at >= group.last_seen) {
      group.last_seen = at;
      group.example = seq;
    }
    return &group;
  }

  // The error's text is that of the example.
  Status name(ErrorGroup& group) const {
    const std::string key = storage::job_key({queue_, group.example});
    const auto dead = snapshot_.get(Keyspace::dead, key);
    if (!dead) return dead.error();
    if (const auto ended = storage::decode_ended(dead->value_or(std::string()))) {
      set_error(group, *ended->state);
      return ok();
    }
    const auto bytes = snapshot_.get(Keyspace::states, key);
    if (!bytes) return bytes.error();
    if (const auto state = storage::decode_state(bytes->value_or(std::string()))) {
      set_error(group, *state);
    }
    return ok();
  }

  static void set_error(ErrorGroup& group, const JobState& state) {
    group.error = normalize_error(state.last_error);
    group.error_type = state.last_error_type;
  }

  const Snapshot& snapshot_;
  const QueueNumber queue_;
  absl::flat_hash_map<std::uint64_t, ErrorGroup> groups_;
  std::uint64_t beyond_ = 0;
};

}  // namespace

Result<ErrorGroups> group_errors(const storage::Storage& storage, QueueNumber queue,
                                 const ErrorGroupsQuery& query, Timestamp now) {
  const auto snapshot = storage.snapshot();
  Grouping grouping(*snapshot, queue);
  if (query.status != JobStatus::failed) REPRISE_TRY(grouping.add_dead());
  if (query.status != JobStatus::dead) REPRISE_TRY(grouping.add_failed(now));
  return grouping.largest(query.limit);
}

}  // namespace reprise
