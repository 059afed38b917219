// Browse: reading jobs for people, straight from committed storage and off the engine's thread, so
// that looking never slows the queue down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

struct JobFilter {
  std::optional<JobStatus> status;
  std::optional<Lane> lane;
  std::string error;                   // substring of the last error; empty: any
  std::optional<Duration> older_than;  // pushed longer ago than this
  std::vector<std::pair<std::string, std::string>> headers;  // each must be there with this value
};

struct BrowseQuery {
  QueueName queue;
  JobFilter filter;
  std::uint32_t limit = 50;
  std::string cursor;  // from the page before; empty: the start
};

// One job as people see it.
struct JobView {
  Seq seq{};
  JobStatus status{};  // at the time of the query
  RecordPtr record;
  StatePtr state;  // null: fresh and pending, never leased
};

struct BrowsePage {
  std::vector<JobView> jobs;  // by push order
  // Empty: the end. A page may be shorter than the limit, even empty, and still have a cursor: one
  // call looks at a bounded number of jobs.
  std::string cursor;
};

}  // namespace reprise
