#include "sim/workload.h"

#include <algorithm>

namespace reprise::sim {
namespace {

using namespace std::chrono_literals;

// How often each step comes in an ordinary run, in the order of Step.
constexpr std::array<std::uint32_t, kStepCount> kWeights = {
    60,  // push
    60,  // claim
    4,   // cancel_claim
    30,  // ack
    25,  // fail
    12,  // release
    10,  // extend
    8,   // drop
    5,   // put_queue
    4,   // set_retry
    3,   // pause
    8,   // resume
    2,   // delete_queue
    3,   // forget_keys
    2,   // toggle_disk_low
    50,  // let_time_pass
    15,  // tick
    50,  // seal
    50,  // commit
    5,   // sync
    20,  // settle
    2,   // kill
    3,   // cut_power
    1,   // fail_sync
};

}  // namespace

Workload::Workload(Dice& dice)
    : dice_(dice),
      queues_(1 + dice.below(3)),
      cache_bytes_(dice.pick<std::uint64_t>({1, 2000, 32 << 20})),
      max_sealed_(dice.below(3)),
      max_unsettled_(dice.below(3)),
      sync_percent_(dice.pick<std::uint64_t>({100, 100, 50, 10})),
      tick_percent_(dice.pick<std::uint64_t>({100, 70, 20})),
      with_ttl_(dice.percent(50)),
      with_quotas_(dice.percent(30)) {
  for (std::size_t i = 0; i < kStepCount; ++i) {
    weights_[i] = kWeights[i] * dice.pick<std::uint32_t>({0, 1, 1, 1, 3});
  }
  // Without these nothing happens, or nothing ends.
  for (const Step step : {Step::push, Step::claim, Step::let_time_pass, Step::seal, Step::commit}) {
    const auto i = static_cast<std::size_t>(step);
    weights_[i] = std::max(weights_[i], kWeights[i]);
  }
}

QueueName Workload::queue_name() {
  static const std::array<QueueName, 3> kNames = {QueueName{.name = "a"}, QueueName{.name = "b"},
                                                  QueueName{.ns = "other", .name = "a"}};
  return kNames[dice_.below(queues_)];
}

QueueConfig Workload::queue_config() {
  QueueConfig config{.lease = lease(),
                     .retry = retry_policy(),
                     .key_window = dice_.pick<Duration>({1s, 10s, 24h})};
  if (with_ttl_ && dice_.percent(50)) config.ttl = dice_.pick<Duration>({1s, 10s, 60s});
  if (with_quotas_ && dice_.percent(50)) config.max_jobs = 1 + dice_.below(20);
  if (with_quotas_ && dice_.percent(50)) config.max_bytes = 1 + dice_.below(500);
  return config;
}

RetryPolicy Workload::retry_policy() {
  return {.attempts = static_cast<std::uint32_t>(dice_.below(5)), .cooldown = short_wait()};
}

PushCommand Workload::push() {
  PushCommand command{.queue = queue_name(), .create = dice_.percent(30)};
  for (std::uint64_t count = dice_.percent(70) ? 1 : dice_.below(8); count > 0; --count) {
    command.jobs.push_back(new_job());
    if (dice_.percent(3)) command.jobs.push_back(Error{Errc::payload_too_large, "too large"});
  }
  return command;
}

NewJob Workload::new_job() {
  NewJob job;
  job.payload = "p" + std::to_string(++jobs_made_);
  if (dice_.percent(10)) job.payload += std::string(dice_.below(3000), 'x');
  if (dice_.percent(20)) job.payload_kind = PayloadKind::bytes;
  if (dice_.percent(20)) job.headers = {{"tenant", std::string(dice_.below(5), 't')}};
  if (dice_.percent(25)) job.delay = short_wait();
  if (dice_.percent(30)) job.priority = static_cast<Priority>(dice_.below(3));
  if (with_ttl_ && dice_.percent(30)) job.ttl = dice_.pick<Duration>({1us, 1s, 5s, 10s, 60s});
  if (dice_.percent(30)) job.key = "k" + std::to_string(dice_.below(6));
  return job;
}

ClaimCommand Workload::claim() {
  ClaimCommand command{.queue = queue_name()};
  command.max = dice_.percent(60) ? 1 : static_cast<std::uint32_t>(1 + dice_.below(10));
  if (dice_.percent(40)) command.wait = dice_.pick<Duration>({100ms, 1s, 10s, 60s});
  if (dice_.percent(50)) command.lease = lease();
  if (dice_.percent(30)) command.lane = dice_.pick({LaneChoice::fresh, LaneChoice::retry});
  if (dice_.percent(50)) command.worker = "w" + std::to_string(dice_.below(3));
  return command;
}

FailItem Workload::fail() {
  FailItem item;
  if (dice_.percent(70)) item.error = "e" + std::to_string(dice_.below(4));
  if (dice_.percent(25)) item.delay = short_wait();
  item.final = dice_.percent(8);
  return item;
}

ReleaseItem Workload::release() {
  ReleaseItem item;
  item.delay = short_wait();
  return item;
}

ExtendItem Workload::extend() {
  ExtendItem item;
  if (dice_.percent(70)) item.lease = lease();
  return item;
}

Duration Workload::short_wait() {
  return dice_.pick<Duration>({0s, 0s, 1us, 100ms, 1s, 5s, 10s, 30s});
}

Duration Workload::lease() { return dice_.pick<Duration>({100ms, 1s, 10s, 60s}); }

Duration Workload::time_step() {
  if (dice_.percent(5)) return dice_.pick<Duration>({1h, 25h});
  return dice_.pick<Duration>({0s, 1us, 50ms, 100ms, 1s, 1s, 5s, 10s, 30s});
}

}  // namespace reprise::sim
