// RunStore: the runs there are and were, each in a directory of its own: run.json and log. Records
// are written when a run begins and when it ends, without a sync: they have to survive the server,
// not the power.
// Threads: one owner, the loop; logs may be written from others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "worker/run_log.h"
#include "worker/worker_service.h"

namespace reprise::worker {

class RunStore {
 public:
  struct Options {
    std::string directory;
    std::uint32_t keep = 1000;
    std::uint64_t log_bytes = 10ULL << 20;
  };
  // Reads what is there. Runs that had not ended are lost from now on. Errc::io: the directory
  // cannot be used.
  static Result<std::unique_ptr<RunStore>> open(Options options, Random& random, Timestamp now);

  // A new run, with a directory and a log; its id and log_* are set here. Errc::io.
  Result<std::string> begin(RunView run);
  // The record as it is now, in memory; a running one's log_* may be behind.
  RunView* find(std::string_view id);
  std::shared_ptr<RunLog> log(std::string_view id);
  // How it ended, and when.
  void end(std::string_view id, RunStatus status, std::string error, std::string error_type,
           Timestamp now);

  // `id` is whole or a unique prefix of at least 4. Errc::run_not_found, ambiguous_id.
  Result<std::string> resolve(std::string_view id) const;
  std::vector<RunView> list(const RunQuery& query) const;  // newest first
  RunView view(std::string_view id) const;
  LogPart read_log(std::string_view id, const LogQuery& query) const;

 private:
  struct Entry {
    RunView view;
    std::shared_ptr<RunLog> log;  // null: it has ended
  };
  RunStore(Options options, Random& random);
  std::string path_of(std::string_view id) const;
  bool write(const RunView& run) const;
  void load(Timestamp now);
  void remember(RunView run, std::shared_ptr<RunLog> log);
  void forget_excess();

  const Options options_;
  Random& random_;
  std::map<std::string, Entry, std::less<>> runs_;
  std::set<std::pair<Timestamp, std::string>> by_start_;
  std::set<std::pair<Timestamp, std::string>> ended_;
};

std::string encode_run(const RunView& run);
std::optional<RunView> decode_run(std::string_view text);

}  // namespace reprise::worker
