// BulkPush: sends a stream of jobs in batches, in order, and keeps count.
// A job that is refused never stops the others: when the server refuses a whole batch for what one
// of its jobs is, the batch is cut in halves until that job stands alone (nothing of a refused
// batch is stored, so nothing is pushed twice). What concerns all jobs stops the stream: no server,
// no such queue, no permission. Memory: one batch. Pure but for `Send`, so tests bring their own
// server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_context.h"
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
    std::uint64_t lines = 0;  // the last line that has its answer
  };
  // Why it ended early, and the lines that were sent without an answer.
  struct Stop {
    Result<client::Reply> reply;
    std::uint64_t first_line = 0;
    std::uint64_t last_line = 0;
  };
  using Send = std::function<Result<client::Reply>(std::string body)>;
  using OnRejected = std::function<void(std::uint64_t line, const Problem& problem)>;

  BulkPush(Send send, OnRejected on_rejected, bool create);

  // `job` is one encoded job. False: stopped; nothing more is sent.
  bool add(std::uint64_t line, std::string job);
  // A line that is no job.
  void reject(std::uint64_t line, const Problem& problem);
  // Sends what is waiting. False: stopped.
  bool flush();

  const Counts& counts() const { return counts_; }
  const std::optional<Stop>& stopped() const { return stop_; }

 private:
  struct Item {
    std::uint64_t line = 0;
    std::string job;
  };
  bool send(std::size_t begin, std::size_t end);
  void count_results(client::JsonView results, std::size_t begin, std::size_t end);

  Send send_;
  OnRejected on_rejected_;
  bool create_;
  std::vector<Item> items_;
  std::size_t bytes_ = 0;
  Counts counts_;
  std::optional<Stop> stop_;
};

}  // namespace reprise::cli
