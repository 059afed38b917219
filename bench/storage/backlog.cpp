#include "backlog.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <list>

#include "batch_pipeline.h"
#include "commit_loop.h"
#include "folder.h"
#include "job_batches.h"
#include "own_cpu.h"

namespace reprise::bench {
namespace {

// The rate of the slowest tenth shows what an average hides: a storage that falls behind while the
// backlog grows.
class SlowestTenth {
 public:
  explicit SlowestTenth(std::uint64_t batches) : tenth_(std::max<std::uint64_t>(batches / 10, 1)) {}
  void batch_done() {
    if (++batches_ % tenth_ != 0) return;
    const TimePoint now = Clock::now();
    slowest_ = std::max(slowest_, now - began_);
    began_ = now;
  }
  double batches_per_second() const { return static_cast<double>(tenth_) / to_seconds(slowest_); }

 private:
  const std::uint64_t tenth_;
  std::uint64_t batches_ = 0;
  TimePoint began_ = Clock::now();
  Nanoseconds slowest_{1};
};

std::string fill(Committer& committer, const BacklogOptions& options) {
  const std::uint64_t batches =
      (options.jobs + options.jobs_per_batch - 1) / options.jobs_per_batch;
  const std::uint64_t jobs = batches * options.jobs_per_batch;
  JobBatches source(options.queues);
  commit(committer, source.make_queues());
  std::uint64_t made = 0;
  BatchPipeline pipeline([&](storage::Batch& batch) {
    if (made == batches) return false;
    source.push(options.jobs_per_batch, batch);
    ++made;
    return true;
  });
  SlowestTenth slowest(batches);
  Nanoseconds starved{};  // waiting for the pipeline: then the figure is not the storage's
  std::list<storage::Batch> taken;
  const auto take = [&]() -> const storage::Batch* {
    const TimePoint asked = Clock::now();
    auto batch = pipeline.take();
    starved += Clock::now() - asked;
    return batch ? &taken.emplace_back(*std::move(batch)) : nullptr;
  };
  const auto give_back = [&](const storage::Batch* done) {
    slowest.batch_done();
    const auto at =
        std::ranges::find_if(taken, [&](const storage::Batch& batch) { return &batch == done; });
    pipeline.give_back(std::move(*at));
    taken.erase(at);
  };
  CommitLoop loop(committer, Mode::sync, {.next = take, .done = give_back});
  const TimePoint started = Clock::now();
  loop.run();
  const double seconds = to_seconds(Clock::now() - started);
  return fmt::format(
      R"({{"jobs":{},"jobs_per_second":{:.1f},"slowest_tenth_jobs_per_second":{:.1f},)"
      R"("starved_seconds":{:.3f},"p50_us":{:.1f},"p99_us":{:.1f},"max_us":{:.1f},)"
      R"("disk_bytes":{},"live_bytes":{},"cpu_seconds":{:.3f}}})",
      jobs, static_cast<double>(jobs) / seconds,
      slowest.batches_per_second() * static_cast<double>(options.jobs_per_batch),
      to_seconds(starved), to_microseconds(loop.latency().percentile(0.5)),
      to_microseconds(loop.latency().percentile(0.99)), to_microseconds(loop.latency().max()),
      allocated_bytes(options.folder), jobs * source.stored_bytes_per_job(), own_cpu_seconds());
}

}  // namespace

void fill_backlog(const BacklogOptions& options) {
  const auto committer = make_committer("reprise", options.folder, storage::Durability::synced);
  fmt::print("{}\n", fill(*committer, options));
  std::fflush(stdout);
  if (options.kill) std::raise(SIGKILL);
}

}  // namespace reprise::bench
