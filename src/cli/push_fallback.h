// PushFallback: where jobs go that no server takes now: into the spool, each as an event of type
// "reprise.push" (docs/spool.md, "Adding").
// An event's id is its job's idempotency key, unless the job has its own, from the first attempt
// on: what was sent without an answer and is sent again from the spool is stored once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/ulid.h"
#include "cli/output.h"
#include "client/client.h"
#include "spool/spool_files.h"
#include "spool/what_fits.h"

namespace reprise::cli {

// Whether the answer to a push is that of a server that is not there, or says "not now".
bool is_away(const Result<client::Reply>& reply);
// The same for people. `server` is its address.
std::string away_reason(const std::string& server, const Result<client::Reply>& reply);
struct PushTarget {
  std::string ns;
  std::string queue;
  bool create = false;
};

// `job` is one encoded job. Errc::payload_too_large: it is beyond what the spool can send.
Result<std::string> push_event(const PushTarget& target, const Ulid& id, std::string_view job);

struct PushedJob {
  std::uint64_t line = 0;
  std::string job;
  Ulid id;  // of its event
};

// What became of jobs that were to be spooled.
struct KeptJobs {
  std::size_t dealt_with = 0;  // the first so many were stored, or are in `rejected`
  std::size_t stored = 0;
  std::vector<std::pair<std::uint64_t, Problem>> rejected;  // by line: too large for the spool
  std::optional<Error> error;                               // why the others were not
};
KeptJobs keep_jobs(const PushTarget& target, std::span<const PushedJob> jobs,
                   const spool::AddEvents& add);

class PushFallback {
 public:
  explicit PushFallback(PushTarget target) : target_(std::move(target)) {}

  Ulid next_id() { return ids_.next(clock_.now()); }
  // The spool is opened, or made, for the first of them.
  KeptJobs keep(std::span<const PushedJob> jobs);
  // Older events that had to go.
  std::uint64_t dropped() const { return dropped_; }
  // Of the spool; empty as long as nothing was kept.
  std::string directory() const;

 private:
  Result<spool::Added> add(const std::vector<spool::NewFile>& events);

  PushTarget target_;
  SteadyWallClock clock_;
  SystemRandom random_;
  UlidSource ids_{random_};
  std::optional<spool::SpoolFiles> files_;
  std::uint64_t dropped_ = 0;
};

// What to tell a person whose job or jobs are in the spool now.
struct SpooledNote {
  std::string directory;
  std::string reason;
  std::string_view them;  // "it", or "them"
  std::uint64_t dropped = 0;
};
std::string spooled_note(const SpooledNote& note);

}  // namespace reprise::cli
