// Browse: reading jobs for people, straight from committed storage and off the engine's thread, so
// that looking never slows the queue down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/job_filter.h"
#include "model/operation.h"
#include "model/queue.h"

namespace reprise {

enum class BrowseOrder : std::uint8_t {
  push,
  newest,  // the latest to end first; of dead or completed jobs only
};

struct BrowseQuery {
  QueueName queue;
  JobFilter filter;
  BrowseOrder order = BrowseOrder::push;
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
  std::vector<JobView> jobs;
  // Empty: the end. A page may be shorter than the limit, even empty, and still have a cursor: one
  // call looks at a bounded number of jobs.
  std::string cursor;
};

// What a retry or purge by filter would do.
struct SelectionPreview {
  std::uint64_t matched = 0;
  std::vector<JobView> examples;  // the first few
};

struct ErrorGroupsQuery {
  QueueName queue;
  std::optional<JobStatus> status;  // dead or failed; nothing: both
  std::uint32_t limit = 50;
};
// Jobs that died of, or cool down after, the same error.
struct ErrorGroup {
  std::uint64_t fingerprint{};
  std::uint64_t dead = 0;
  std::uint64_t failed = 0;
  Timestamp first_seen = kNever;
  Timestamp last_seen{};
  Seq example{};           // the latest
  std::string error;       // its normal form
  std::string error_type;  // empty: none

  std::uint64_t count() const { return dead + failed; }
};
struct ErrorGroups {
  std::vector<ErrorGroup> groups;  // the largest first
  std::uint64_t other = 0;         // jobs of the groups left out
};

struct AuditQuery {
  std::string ns;     // empty: all
  std::string queue;  // empty: all
  std::optional<AuditAction> action;
  std::uint32_t limit = 50;
  std::optional<std::uint64_t> before;  // only records with smaller numbers
};
struct AuditPage {
  std::vector<AuditRecord> records;     // newest first
  std::optional<std::uint64_t> before;  // where the next page begins; nothing: the end
};

}  // namespace reprise
