#include "storage/live_jobs.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "storage/keys.h"
#include "storage/records.h"

namespace reprise::storage {
namespace {

Error located(const Error& error, std::string_view key) {
  return {error.code, describe_job(key) + ": " + error.detail};
}

Error orphan(std::string_view key) {
  return {Errc::corrupt, describe_job(key) + ": its state is there without its record"};
}

Status visit_job(std::string_view key, std::string_view record,
                 std::optional<std::string_view> state, LiveJobVisitor& visitor) {
  const auto job = parse_job_key(key);
  if (!job) return Error{Errc::corrupt, "a job's record stands under a key that is no job's"};
  auto outline = decode_job_outline(record);
  if (!outline) return located(outline.error(), key);
  if (!state && outline->expires_at == kNever) {
    return visitor.fresh(job->queue, outline->priority, outline->scheduling, std::array{job->seq});
  }
  LiveJob live{.key = *job,
               .priority = outline->priority,
               .expires_at = outline->expires_at,
               .scheduling = std::move(outline->scheduling)};
  if (state) {
    const auto decoded = decode_state(*state);
    if (!decoded) return located(decoded.error(), key);
    live.state = outline_of(*decoded);
  }
  return visitor.other(live);
}

}  // namespace

Status scan_live_jobs(const Storage::Snapshot& snapshot, LiveJobVisitor& visitor) {
  const auto jobs = snapshot.cursor(Keyspace::jobs, {}, {});
  const auto states = snapshot.cursor(Keyspace::states, {}, {});
  for (; jobs->valid(); jobs->next()) {
    if (states->valid() && states->key() < jobs->key()) return orphan(states->key());
    const bool has_state = states->valid() && states->key() == jobs->key();
    REPRISE_TRY(visit_job(jobs->key(), jobs->value(),
                          has_state ? std::optional(states->value()) : std::nullopt, visitor));
    if (has_state) states->next();
  }
  REPRISE_TRY(jobs->status());
  REPRISE_TRY(states->status());
  if (states->valid()) return orphan(states->key());
  return ok();
}

JobState outline_of(const JobState& state) {
  JobState outline;
  outline.status = state.status;
  outline.failures = std::min<std::uint32_t>(state.failures, kFailuresKnown);
  outline.due = state.due;
  if (state.status == JobStatus::active) {
    outline.lease_nonce = state.lease_nonce;
    outline.lease_deadline = state.lease_deadline;
  }
  return outline;
}

std::string describe_job(std::string_view key) {
  const auto job = parse_job_key(key);
  if (!job) return "a key that is no job's";
  return "job " + encode_job_id(job->seq) + " of queue number " + std::to_string(job->queue);
}

}  // namespace reprise::storage
