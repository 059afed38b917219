// Workload: the random commands of one run. Values come from short lists, so that jobs meet at the
// same times, keys and priorities again and again.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/commands.h"
#include "model/config_entry.h"
#include "model/throttle.h"
#include "sim/dice.h"

namespace reprise::sim {

enum class Step : std::uint8_t {
  push,
  claim,
  cancel_claim,
  ack,
  fail,
  release,
  extend,
  drop,
  retry,
  purge,
  start_operation,
  step_operation,
  cancel_operation,
  sweep,
  finish_webhooks,
  answer_hooks,
  set_config,
  unset_config,
  set_throttle,
  unset_throttle,
  put_queue,
  edit_queue,
  pause,
  resume,
  delete_queue,
  forget_keys,
  toggle_disk_low,
  let_time_pass,
  tick,
  seal,
  commit,
  sync,
  settle,
  kill,
  cut_power,
  fail_sync,
};
inline constexpr std::size_t kStepCount = 36;

class Workload {
 public:
  // Each run has its own character: some steps are left out, some are frequent.
  explicit Workload(Dice& dice);

  Step next_step() { return static_cast<Step>(dice_.weighted(weights_)); }
  QueueName queue_name();
  QueueConfig queue_config();
  RetryPolicy retry_policy();
  FetchPolicy fetch_policy();
  // A change of one thing or another.
  ConfigEdit config_edit();
  StartOperationCommand operation();
  PushCommand push();
  ClaimCommand claim();
  FailItem fail();
  ReleaseItem release();
  ExtendItem extend();
  ConfigEntry config_entry();
  Throttle throttle();
  Duration short_wait();  // delays and cooldowns; zero too
  Duration lease();
  Duration time_step();
  bool starts_configured() { return dice_.percent(70); }
  // After a step: hooks are asked at once, or with what the next steps bring.
  bool asks_hooks_now() { return with_hooks_ && dice_.percent(70); }
  bool ticks_after_time_step() { return dice_.percent(tick_percent_); }

  std::uint64_t cache_bytes() const { return cache_bytes_; }
  std::uint64_t max_sealed() const { return max_sealed_; }
  std::uint64_t max_unsettled() const { return max_unsettled_; }
  bool commits_synced() { return dice_.percent(sync_percent_); }

 private:
  QueueName plain_queue_name();
  NewJob new_job();
  Scheduling scheduling();
  void set_limits(QueueConfig& config);
  void set_keeping(QueueConfig& config);
  void set_hooks(QueueConfig& config);

  Dice& dice_;
  std::array<std::uint32_t, kStepCount> weights_{};
  std::uint64_t queues_;
  std::uint64_t cache_bytes_;
  std::uint64_t max_sealed_;
  std::uint64_t max_unsettled_;
  std::uint64_t sync_percent_;
  std::uint64_t tick_percent_;
  bool unhurried_;  // little time passes between steps: leases and waits are met while they last
  bool with_ttl_;
  bool with_quotas_;
  bool with_dead_letters_;
  bool keeps_ended_;
  bool with_hooks_;
  bool with_keys_;  // of fairness
  bool with_throttles_;
  bool with_limits_;
  bool with_breaker_;
  std::uint64_t jobs_made_ = 0;
};

}  // namespace reprise::sim
