// BulkPush: sends a stream of jobs in batches, in order, and keeps count.
// A job that is refused never stops the others: when the server refuses a whole batch for what one
// of its jobs is, the batch is cut in halves until that job stands alone (nothing of a refused
// batch is stored, so nothing is pushed twice). An answer that does not tell of each job is none.
// What concerns all jobs stops the stream: no server,
// no such queue, no permission. With a fallback a server that is away does not: all that is left
// goes there. Memory: one batch. Pure but for `Send` and `Keep`, so tests bring their own server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/output.h"
#include "cli/push_fallback.h"
#include "client/client.h"

namespace reprise::cli {

class BulkPush {
 public:
  static constexpr std::size_t kBatchJobs = 1000;
  static constexpr std::size_t kBatchBytes = 8 << 20;

  struct Counts {
    std::uint64_t pushed = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t rejected = 0;
    std::uint64_t spooled = 0;
    std::uint64_t lines = 0;  // the last line that has its answer, or is spooled
  };
  // Why it ended early, and the lines that were sent without an answer: from the first one that is
  // left to the last, none when that comes before.
  struct Stop {
    Result<client::Reply> reply;
    std::uint64_t first_line = 0;
    std::uint64_t last_line = 0;
    std::optional<Error> spool_error;  // why what was left could not be spooled
  };
  using Send = std::function<Result<client::Reply>(std::string body)>;
  using Keep = std::function<KeptJobs(std::span<const PushedJob> jobs)>;
  using OnRejected = std::function<void(std::uint64_t line, const Problem& problem)>;

  BulkPush(Send send, OnRejected on_rejected, bool create);
  // Where jobs go that have an id, when the server is away.
  void set_fallback(Keep keep) { keep_ = std::move(keep); }

  // `job.job` is one encoded job. False: stopped; nothing more is sent.
  bool add(PushedJob job);
  // A line that is no job.
  void reject(std::uint64_t line, const Problem& problem);
  // Sends what is waiting. False: stopped.
  bool flush();

  const Counts& counts() const { return counts_; }
  const std::optional<Stop>& stopped() const { return stop_; }
  // The answer after which jobs were spooled; no value: none were.
  const std::optional<Result<client::Reply>>& away() const { return away_; }

 private:
  bool send(std::size_t begin, std::size_t end);
  bool leave_to_spool(Result<client::Reply> reply, std::size_t begin, std::size_t end);
  bool keep(std::size_t begin, std::size_t end);
  void count_results(const std::vector<JsonView>& results, std::size_t begin, std::size_t end);

  Send send_;
  OnRejected on_rejected_;
  bool create_;
  Keep keep_;
  std::vector<PushedJob> items_;
  std::size_t bytes_ = 0;
  Counts counts_;
  std::optional<Stop> stop_;
  std::optional<Result<client::Reply>> away_;
  std::uint64_t last_line_sent_ = 0;  // when that answer came
};

}  // namespace reprise::cli
