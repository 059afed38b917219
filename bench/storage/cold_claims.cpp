#include "cold_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "broker/core.h"
#include "clock.h"
#include "folder.h"
#include "job_batches.h"
#include "own_cpu.h"
#include "require.h"
#include "subject.h"

namespace reprise::bench {
namespace {

class Consumer {
 public:
  explicit Consumer(const std::string& folder)
      : storage_(open_subject(folder)),
        core_(require(BrokerCore::recover(*storage_, random_, {}))) {}

  // Returns the tokens. Claimed is what is committed.
  std::vector<AckItem> claim(std::uint64_t jobs) {
    auto reply = core_->engine().claim(0,
                                       {.queue = {.name = kQueueName},
                                        .max = static_cast<std::uint32_t>(jobs),
                                        .lease = std::chrono::hours(1),
                                        .worker = "bench-worker"},
                                       now());
    const ClaimReply claimed = require(std::move(*reply));
    if (claimed.jobs.size() != jobs) throw LoadError("the backlog is too small for so many claims");
    std::vector<AckItem> items;
    items.reserve(jobs);
    for (const ClaimedJob& job : claimed.jobs) items.push_back({job.token});
    commit();
    return items;
  }

  void ack(const std::vector<AckItem>& items) {
    for (auto& acked : core_->engine().ack(items, now())) require(std::move(acked));
    commit();
  }

 private:
  Timestamp now() const { return clock_.now(); }
  void commit() {
    SealedBatch batch = core_->seal(now());
    require(BrokerCore::commit(*storage_, batch.changes, storage::Durability::synced));
    core_->settled(batch.number);
  }

  const SteadyWallClock clock_;
  SeededRandom random_{42};
  const std::unique_ptr<storage::Storage> storage_;
  const std::unique_ptr<BrokerCore> core_;
};

}  // namespace

std::string claim_cold(const ClaimOptions& options) {
  drop_from_page_cache(options.folder);
  const TimePoint opening = Clock::now();
  Consumer consumer(options.folder);
  const TimePoint started = Clock::now();
  for (std::uint64_t left = options.jobs; left > 0;) {
    const std::uint64_t jobs = std::min<std::uint64_t>(left, options.jobs_per_claim);
    const auto items = consumer.claim(jobs);
    if (options.ack) consumer.ack(items);
    left -= jobs;
  }
  const double seconds = to_seconds(Clock::now() - started);
  return fmt::format(
      R"({{"jobs":{},"jobs_per_second":{:.1f},"recovery_seconds":{:.4f},"cpu_seconds":{:.3f}}})",
      options.jobs, static_cast<double>(options.jobs) / seconds, to_seconds(started - opening),
      own_cpu_seconds());
}

}  // namespace reprise::bench
