// JobFilter: which jobs of a queue are meant, for browse, retry, purge and errors alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "base/time.h"
#include "model/job.h"

namespace reprise {

struct JobFilter {
  std::optional<JobStatus> status;
  std::optional<Lane> lane;
  std::string error;       // a part of the last error; empty: any
  std::string error_type;  // the last error's; empty: any
  std::optional<std::uint64_t> fingerprint;
  std::optional<DeathReason> reason;
  // Since the end of a dead or completed job, since the push of any other; both strictly.
  std::optional<Duration> older_than;
  std::optional<Duration> newer_than;
  std::vector<std::pair<std::string, std::string>> headers;  // each must be there with this value
  friend bool operator==(const JobFilter&, const JobFilter&) = default;

  // Whether status, times and fingerprint are not enough to judge by.
  bool needs_job() const {
    return lane || reason || !error.empty() || !error_type.empty() || !headers.empty();
  }
};

// All but the status, which the caller knows. `now` is when the question was asked.
bool matches(const JobFilter& filter, const JobRecord& record, const JobState* state,
             Timestamp now);

// The form that retry and purge take: everything but the lane. On error the message names the field
// under "filter.".
Result<JobFilter> filter_from_json(const Json& json);
// Names only what is set.
void write_filter_json(JsonWriter& out, const JobFilter& filter);

}  // namespace reprise
