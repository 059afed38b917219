#include "compare.h"

#include <fmt/format.h>

#include "folder.h"
#include "job_batches.h"
#include "own_cpu.h"

namespace reprise::bench {
namespace {

// How far behind its push a job is leased and acked, in jobs: what a busy server has under way.
constexpr std::uint64_t kLeaseDistance = 2048;
constexpr std::uint64_t kAckDistance = 4096;

struct Prepared {
  storage::Batch queues;
  std::vector<storage::Batch> batches;
  std::uint64_t jobs = 0;
};

class Preparation {
 public:
  explicit Preparation(const CompareOptions& options)
      : options_(options), steps_(batches_for(options.jobs)), source_(1) {
    prepared_.queues = source_.make_queues();
    prepared_.jobs = steps_ * options.jobs_per_batch;
  }

  Prepared pushes() {
    for (std::uint64_t step = 0; step < steps_; ++step) add(&JobBatches::push);
    return std::move(prepared_);
  }
  // Three batches for as many lives as a batch has jobs: pushes, then the leases of jobs pushed a
  // while ago, then the acks of jobs leased a while ago.
  Prepared lives() {
    const std::uint64_t lease_lag = batches_for(kLeaseDistance);
    const std::uint64_t ack_lag = batches_for(kAckDistance);
    for (std::uint64_t step = 0; step < steps_ + ack_lag; ++step) {
      if (step < steps_) add(&JobBatches::push);
      if (step >= lease_lag && step < steps_ + lease_lag) add(&JobBatches::lease);
      if (step >= ack_lag) add(&JobBatches::ack);
    }
    return std::move(prepared_);
  }

 private:
  std::uint64_t batches_for(std::uint64_t jobs) const {
    return (jobs + options_.jobs_per_batch - 1) / options_.jobs_per_batch;
  }
  void add(void (JobBatches::*make)(std::uint64_t, storage::Batch&)) {
    (source_.*make)(options_.jobs_per_batch, prepared_.batches.emplace_back());
  }

  const CompareOptions& options_;
  const std::uint64_t steps_;
  JobBatches source_;
  Prepared prepared_;
};

std::string measure(const std::string& name, const CompareOptions& options,
                    const Prepared& prepared) {
  const ScratchFolder folder(options.folder + "/" + name);
  const auto committer = make_committer(
      name, folder.path(),
      options.mode == Mode::sync ? storage::Durability::synced : storage::Durability::buffered);
  commit(*committer, prepared.queues);
  std::size_t taken = 0;
  CommitLoop loop(*committer, options.mode, {.next = [&] {
    return taken < prepared.batches.size() ? &prepared.batches[taken++] : nullptr;
  }});
  const double cpu_before = own_cpu_seconds();
  const TimePoint started = Clock::now();
  loop.run();
  const double seconds = to_seconds(Clock::now() - started);
  const auto jobs = static_cast<double>(prepared.jobs);
  return fmt::format(
      R"({{"jobs_per_second":{:.1f},"commits_per_second":{:.1f},"p50_us":{:.1f},"p99_us":{:.1f},)"
      R"("max_us":{:.1f},"cpu_us_per_job":{:.3f}}})",
      jobs / seconds, static_cast<double>(prepared.batches.size()) / seconds,
      to_microseconds(loop.latency().percentile(0.5)),
      to_microseconds(loop.latency().percentile(0.99)), to_microseconds(loop.latency().max()),
      (own_cpu_seconds() - cpu_before) / jobs * 1e6);
}

}  // namespace

std::string compare(const CompareOptions& options) {
  Preparation preparation(options);
  const Prepared prepared =
      options.workload == Workload::lives ? preparation.lives() : preparation.pushes();
  std::string report = fmt::format(R"({{"jobs":{})", prepared.jobs);
  for (const std::string& name : options.committers) {
    report += fmt::format(R"(,"{}":{})", name, measure(name, options, prepared));
  }
  return report + fmt::format(R"(,"cpu_seconds":{:.3f}}})", own_cpu_seconds());
}

}  // namespace reprise::bench
