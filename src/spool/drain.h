// Drain: sends what is queued, by the rules of docs/spool.md ("Draining"), whose numbers the code
// names. One run takes what was there when it began, batch by batch.
//
// Invariants: an event leaves the queue only after the endpoint has taken it, or after its dead
// letter is durable; in one run it is counted at most once; every event found is in exactly one of
// the counts of DrainResult.
// Threads: one owner, which holds the DrainLock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "spool/dead_letters.h"
#include "spool/ingest_endpoint.h"
#include "spool/spool_files.h"

namespace reprise::spool {

class BatchBuilder;
class Settler;

struct DrainOptions {
  std::size_t batch = 50;
  std::uint32_t max_attempts = 10;
  // They wait for the disk, most of the time. 0: files are deleted one after the other, between
  // requests.
  std::size_t removal_threads = 24;
};

enum class DrainEnd : std::uint8_t {
  finished,  // every batch was tried; `failed_batches` says how many in vain
  trouble,   // three failed batches in a row, or the endpoint asks for more patience than we have
  refused,   // something that a person must fix: token, address
  interrupted,
};

struct DrainResult {
  std::uint64_t accepted = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t dead_lettered = 0;  // without corrupt ones
  std::uint64_t corrupt = 0;
  std::uint64_t remaining = 0;
  std::uint64_t retried = 0;  // of the remaining: rejected, to be sent again
  DrainEnd end = DrainEnd::finished;
  std::uint64_t failed_batches = 0;
  std::string stop_reason;                  // for people; empty when finished
  std::optional<Duration> come_back_after;  // when the endpoint asked for it
  std::uint64_t local_failures = 0;  // files that could not be read, counted or dead-lettered
  std::vector<std::string> rejected_files;  // names of the retried ones

  bool stopped_early() const { return end != DrainEnd::finished; }
};

// Time that passes. False: an interrupt has ended the wait, or was there before.
class Pauses {
 public:
  virtual ~Pauses() = default;
  virtual bool wait(Duration time) = 0;
  virtual bool interrupted() const = 0;
};

// Whom to tell; each may be empty.
struct DrainWatcher {
  std::function<void(const std::string& text)> warn;  // a line
  std::function<void(std::uint64_t done, std::uint64_t found)> progress;
};

class Drain {
 public:
  // Everything that is handed over must outlive it.
  struct Parts {
    SpoolFiles& files;
    IngestEndpoint& endpoint;
    Pauses& pauses;
    const Clock& clock;
    Random& random;  // for the jitter of waits
  };
  Drain(Parts parts, DrainOptions options, DrainWatcher watcher);

  // One run. Sweeps temporaries first. `leave_out` names files that are not touched this time (they
  // are no part of the result); empty: none.
  // An error means that the spool itself cannot be read.
  Result<DrainResult> run(const std::function<bool(const std::string& name)>& leave_out = {});

 private:
  // The names of what this run takes.
  Result<std::vector<std::string>> find_files(
      const std::function<bool(const std::string& name)>& leave_out);
  void sweep();
  void send_all(BatchBuilder& batches, Settler& settler, DrainResult& result);
  void warn(const std::string& text) const;
  // What the run before has told already is not told again.
  void warn_of_file(const std::string& text);

  Parts parts_;
  DrainOptions options_;
  DrainWatcher watcher_;
  bool swept_ = false;
  std::set<std::string> told_before_;
  std::set<std::string> told_;
};

}  // namespace reprise::spool
