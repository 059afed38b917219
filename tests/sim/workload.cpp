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
    20,  // ack
    40,  // fail
    12,  // release
    10,  // extend
    8,   // drop
    16,  // retry
    5,   // purge
    6,   // start_operation
    16,  // step_operation
    1,   // cancel_operation
    10,  // sweep
    6,   // finish_webhooks
    60,  // answer_hooks
    2,   // set_config
    1,   // unset_config
    12,  // set_throttle
    4,   // unset_throttle
    5,   // put_queue
    6,   // edit_queue
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
      unhurried_(dice.percent(60)),
      with_ttl_(dice.percent(50)),
      with_quotas_(dice.percent(30)),
      with_dead_letters_(dice.percent(50)),
      keeps_ended_(dice.percent(50)),
      with_hooks_(dice.percent(60)),
      with_keys_(dice.percent(60)),
      with_throttles_(dice.percent(50)),
      with_limits_(dice.percent(40)),
      with_breaker_(dice.percent(40)) {
  for (std::size_t i = 0; i < kStepCount; ++i) {
    weights_[i] = kWeights[i] * dice.pick<std::uint32_t>({0, 1, 1, 1, 3});
  }
  // Without these nothing happens, or nothing ends.
  for (const Step step : {Step::push, Step::claim, Step::let_time_pass, Step::seal, Step::commit}) {
    const auto i = static_cast<std::size_t>(step);
    weights_[i] = std::max(weights_[i], kWeights[i]);
  }
  if (!with_throttles_) {
    weights_[static_cast<std::size_t>(Step::set_throttle)] = 0;
    weights_[static_cast<std::size_t>(Step::unset_throttle)] = 0;
  }
  if (!with_hooks_) weights_[static_cast<std::size_t>(Step::answer_hooks)] = 0;
}

QueueName Workload::queue_name() {
  if (with_dead_letters_ && dice_.percent(25)) return {.name = "graves"};
  return plain_queue_name();
}

QueueName Workload::plain_queue_name() {
  static const std::array<QueueName, 3> kNames = {QueueName{.name = "a"}, QueueName{.name = "b"},
                                                  QueueName{.ns = "other", .name = "a"}};
  return kNames[dice_.below(queues_)];
}

QueueConfig Workload::queue_config() {
  QueueConfig config{.lease = lease(),
                     .retry = retry_policy(),
                     .fetch = fetch_policy(),
                     .key_window = dice_.pick<Duration>({1s, 10s, 24h})};
  if (with_ttl_ && dice_.percent(50)) config.ttl = dice_.pick<Duration>({1s, 10s, 60s});
  if (with_quotas_ && dice_.percent(50)) config.max_jobs = 1 + dice_.below(20);
  if (with_quotas_ && dice_.percent(50)) config.max_bytes = 1 + dice_.below(500);
  if (with_dead_letters_ && dice_.percent(60)) {
    config.dead_letter_queue = dice_.percent(80) ? "graves" : "b";
  }
  if (dice_.percent(20)) config.on_dead_webhook = "http://hooks.example/dead";
  set_keeping(config);
  set_hooks(config);
  set_limits(config);
  return config;
}

void Workload::set_limits(QueueConfig& config) {
  if (with_limits_ && dice_.percent(40)) config.concurrency = 1 + dice_.below(6);
  if (with_limits_ && dice_.percent(50)) config.concurrency_per_key = 1 + dice_.below(3);
  if (!with_breaker_ || dice_.percent(30)) return;
  config.breaker =
      OutagePolicy{.failure_rate_ppm = dice_.pick<std::uint32_t>({1, 300'000, 500'000, 1'000'000}),
                   .window = dice_.pick<Duration>({1s, 7s, 60s}),
                   .min = static_cast<std::uint32_t>(1 + dice_.below(5)),
                   .pause = dice_.pick<Duration>({100ms, 1s, 5s}),
                   .canaries = static_cast<std::uint32_t>(1 + dice_.below(3))};
}

// Few scripts, so that a queue gets the same one again.
void Workload::set_hooks(QueueConfig& config) {
  config.hooks = {};
  config.hook_timeout_ms.reset();
  if (!with_hooks_) return;
  for (std::string& source : config.hooks) {
    if (dice_.percent(60)) source = dice_.pick<std::string>({"one", "two"});
  }
  config.on_hook_error = dice_.pick({OnHookError::retry, OnHookError::policy, OnHookError::dlq});
  if (dice_.percent(20)) config.hook_timeout_ms = 5;
}

void Workload::set_keeping(QueueConfig& config) {
  config.keep_dead.reset();
  config.max_dead.reset();
  config.keep_completed.reset();
  if (!keeps_ended_) return;
  if (dice_.percent(40)) config.keep_dead = dice_.pick<Duration>({1us, 5s, 60s, 2h});
  if (dice_.percent(40)) config.max_dead = dice_.below(5);
  if (dice_.percent(60)) config.keep_completed = dice_.pick<Duration>({1us, 5s, 60s, 2h});
}

RetryPolicy Workload::retry_policy() {
  RetryPolicy policy{.attempts = static_cast<std::uint32_t>(dice_.below(6)), .wait = short_wait()};
  if (dice_.percent(15)) policy.attempts.reset();
  if (dice_.percent(30)) {
    policy.told_as_retries = policy.attempts && *policy.attempts > 0;
    policy.wait = Backoff{.base = dice_.pick<Duration>({1us, 100ms, 1s, 3s}),
                          .factor = dice_.pick({1.0, 1.5, 4.0}),
                          .max = dice_.pick<Duration>({3s, 10s, 1h}),
                          .jitter = dice_.pick({0.0, 0.1, 1.0})};
  }
  return policy;
}

FetchPolicy Workload::fetch_policy() {
  FetchPolicy policy;
  if (dice_.percent(60)) {
    policy.retry_share_ppm =
        dice_.pick<std::uint32_t>({0, 1, 100'000, 370'000, 500'000, 1'000'000});
  }
  if (dice_.percent(30)) policy.retry_in_flight = 1 + dice_.below(3);
  return policy;
}

ConfigEdit Workload::config_edit() {
  const QueueConfig other = queue_config();
  switch (dice_.below(9)) {
    case 6:
      return [other](QueueConfig& config) {
        config.concurrency = other.concurrency;
        return ok();
      };
    case 7:
      return [other](QueueConfig& config) {
        config.concurrency_per_key = other.concurrency_per_key;
        return ok();
      };
    case 8:
      return [other](QueueConfig& config) {
        config.breaker = other.breaker;
        return ok();
      };
    case 5:
      return [other](QueueConfig& config) {
        config.hooks = other.hooks;
        config.on_hook_error = other.on_hook_error;
        config.hook_timeout_ms = other.hook_timeout_ms;
        return ok();
      };
    case 0:
      return [other](QueueConfig& config) {
        config.fetch = other.fetch;
        return ok();
      };
    case 1:
      return [other](QueueConfig& config) {
        config.dead_letter_queue = other.dead_letter_queue;
        return ok();
      };
    case 2:
      return [other](QueueConfig& config) {
        config.keep_dead = other.keep_dead;
        config.max_dead = other.max_dead;
        config.keep_completed = other.keep_completed;
        return ok();
      };
    default:
      return [other](QueueConfig& config) {
        config.retry = other.retry;
        return ok();
      };
  }
}

StartOperationCommand Workload::operation() {
  StartOperationCommand command{.kind = dice_.pick({OperationKind::retry, OperationKind::purge}),
                                .queue = queue_name(),
                                .asked_by = dice_.percent(50) ? "ops" : ""};
  if (dice_.percent(40)) command.filter.status = JobStatus::dead;
  if (command.kind == OperationKind::retry && dice_.percent(20)) {
    command.filter.status = JobStatus::failed;
  }
  if (dice_.percent(20)) command.filter.error = "e" + std::to_string(dice_.below(4));
  if (dice_.percent(10)) command.filter.reason = DeathReason::max_attempts;
  if (dice_.percent(10)) command.filter.older_than = 1s;
  if (dice_.percent(40)) command.limit = dice_.below(5);
  if (dice_.percent(20)) command.rate = Rate{100, 1s};
  return command;
}

PushCommand Workload::push() {
  PushCommand command{.queue = dice_.percent(90) ? plain_queue_name() : queue_name(),
                      .create = dice_.percent(30)};
  std::uint64_t count = dice_.percent(70) ? 1 : dice_.below(8);
  if (with_keys_ && dice_.percent(10)) count = 30;
  for (; count > 0; --count) {
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
  job.scheduling = scheduling();
  return job;
}

Scheduling Workload::scheduling() {
  Scheduling scheduling;
  if (with_keys_ && dice_.percent(80)) {
    scheduling.fairness_key = dice_.pick<std::string>({"default", "acme", "big", "zeta"});
    // Mostly the same, so that shares can be told.
    scheduling.weight = static_cast<std::uint32_t>(
        dice_.percent(95) ? scheduling.fairness_key.size() % 5 + 1 : 1 + dice_.below(5));
  }
  if (with_throttles_ && dice_.percent(60)) {
    for (std::uint64_t n = 1 + dice_.below(3); n > 0; --n) {
      scheduling.throttle_keys.push_back("t" + std::to_string(dice_.below(3)));
    }
  }
  return scheduling;
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
  if (dice_.percent(30)) item.error_type = dice_.percent(50) ? "Timeout" : "Refused";
  if (dice_.percent(10)) item.outcome = AttemptOutcome::worker_lost;
  item.final = dice_.percent(15);
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

ConfigEntry Workload::config_entry() {
  return {.ns = dice_.pick<std::string>({"default", "other"}),
          .key = dice_.pick<std::string>({"rate", "switch"}),
          .value = std::to_string(dice_.below(100))};
}

Throttle Workload::throttle() {
  return {.ns = dice_.percent(80) ? "default" : "other",
          .key = "t" + std::to_string(dice_.below(3)),
          .rate = dice_.pick<Rate>({{1, 1s}, {2, 1s}, {10, 1s}, {1000, 1s}, {1, 5s}, {3, 7s}}),
          .burst = static_cast<std::uint32_t>(1 + dice_.below(4))};
}

Duration Workload::short_wait() {
  return dice_.pick<Duration>({0s, 0s, 1us, 100ms, 1s, 5s, 10s, 30s});
}

Duration Workload::lease() { return dice_.pick<Duration>({100ms, 1s, 10s, 60s}); }

Duration Workload::time_step() {
  if (dice_.percent(unhurried_ ? 1 : 5)) return dice_.pick<Duration>({1h, 25h});
  if (unhurried_) return dice_.pick<Duration>({0s, 1us, 1us, 50ms, 100ms, 1s});
  return dice_.pick<Duration>({0s, 1us, 50ms, 100ms, 1s, 1s, 5s, 10s, 30s});
}

}  // namespace reprise::sim
