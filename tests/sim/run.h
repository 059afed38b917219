// Run: one simulated run: every step is done by a server and by the model, and compared.
#pragma once

#include <fmt/format.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/auditor.h"
#include "sim/describe.h"
#include "sim/dice.h"
#include "sim/hook_runner.h"
#include "sim/model.h"
#include "sim/server.h"
#include "sim/simulation.h"
#include "sim/violation.h"
#include "sim/workload.h"

namespace reprise::sim {

class Run {
 public:
  explicit Run(const SimulationOptions& options);

  // Throws a Violation.
  void run();
  std::map<std::string, std::uint64_t> take_happened() { return std::move(happened_); }

 private:
  static constexpr int kSteps = 250;
  static constexpr Timestamp kStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

  // run.cpp
  void step(Step step);
  void push(const PushCommand& command);
  void pushed(const QueueName& name, const Result<PushReply>& reply);
  void claim(const ClaimCommand& command);
  void given(const ClaimReply& reply);
  void tell_lease_when_synced(JobKey job, Timestamp until);
  void cancel_claim(ClaimId id);
  void cancel_some_claim();
  void ack();
  void fail();
  void failed(const ItemResults<Failed>& results);
  void release();
  void extend();
  Result<LeaseToken> some_token();
  std::vector<LeaseToken> live_tokens() const;
  Seq some_job(const QueueName& name);
  void drop();
  void put_queue(const QueueName& name, const QueueConfig& config);
  void edit_queue(const QueueName& name, const ConfigEdit& edit);
  void pause(const QueueName& name, bool paused);
  void delete_queue();
  void forget_keys();
  void set_disk_low(bool low);
  void let_time_pass(Duration by);
  void tick();
  void seal();
  void commit(std::size_t batches);
  void sync();
  void restart(Death death);

  // run_failures.cpp
  SelectionCommand some_selection();
  void retry();
  void purge();
  void start_operation();
  void step_operation();
  Engine::OperationStep next_step_of(const Operation& operation);
  void cancel_operation();
  OperationId some_operation();
  void sweep();
  void finish_webhooks();

  // run_hooks.cpp
  void take_hook_work();
  void answer_hooks(const std::vector<HookResult>& results);
  void check_hook_answers();
  void settle_hooks();
  void set_config();
  void unset_config();
  void set_throttle();
  void unset_throttle(const Throttle& throttle);

  // run_checks.cpp
  // After each command, before the model is given it.
  void listen() { listen({}, {}); }
  void listen(ClaimId id, const ClaimReply& reply);
  void check();
  void check_answers();
  void check_queues();
  void check_keys(const QueueStats& stats);
  void check_operations();
  void compare_text(std::string_view what, const std::string& got, const std::string& expected);
  void drain();
  void drain_queues();
  bool all_jobs_ended() const;
  void deal_with_all_dead(OperationKind kind);
  void count_deaths(const Model::Queue& queue);

  template <class T>
  void compare(std::string_view what, const T& got, const T& expected) {
    compare_text(what, describe(got), describe(expected));
  }
  template <class T>
  static Status without_value(const Result<T>& result) {
    return result ? ok() : Status(result.error());
  }

  // For one token or several, good and bad.
  template <class MakeItem>
  auto items_with_tokens(const char* name, const MakeItem& make_item) {
    using Item = std::invoke_result_t<MakeItem>;
    std::vector<Item> items;
    for (std::uint64_t n = dice_.percent(70) ? 1 : 1 + dice_.below(4); n > 0; --n) {
      items.push_back(make_item());
      items.back().token = some_token();
    }
    for (const Item& item : items) {
      trace("{} {}", name, item.token ? describe(*item.token) : "no token");
      if (!item.token) continue;
      auditor_.token_used(item.token->job);
      if constexpr (std::is_same_v<Item, AckItem>) auditor_.end_asked(item.token->job);
    }
    return items;
  }
  // One of ack, release and extend. Returns what succeeded.
  template <class MakeItem, class Item, class Done>
  std::vector<Done> use_tokens(const char* name, const MakeItem& make_item,
                               ItemResults<Done> (Engine::*engine_call)(std::span<const Item>,
                                                                        Timestamp),
                               Result<Done> (Model::*model_call)(const Item&, Timestamp)) {
    const std::vector<Item> items = items_with_tokens(name, make_item);
    const auto got = (server_.engine().*engine_call)(items, now_);
    require(got.size() == items.size(), fmt::format("{}: a result is missing", name));
    listen();
    std::vector<Done> done;
    for (std::size_t i = 0; i < items.size(); ++i) {
      compare(name, got[i], (model_.*model_call)(items[i], now_));
      count(got[i] ? name : fmt::format("{} refused: {}", name, describe_error(got[i].error())));
      if (got[i]) done.push_back(*got[i]);
    }
    return done;
  }

  void count(const std::string& what) { ++happened_[what]; }

  template <class... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (!options_.trace) return;
    fmt::print("{:>14.6f}s  {}\n", std::chrono::duration<double>(now_ - kStart).count(),
               fmt::format(format, std::forward<Args>(args)...));
  }

  const SimulationOptions options_;
  Dice dice_;
  Workload workload_;
  HookRunner runner_;
  Server server_;
  Model model_;
  Auditor auditor_;
  Timestamp now_ = kStart;
  bool disk_low_ = false;
  ClaimId last_claim_ = 0;
  RequestId last_request_ = 0;
  std::map<RequestId, QueueName> waiting_pushes_;
  std::vector<LeaseToken> tokens_;     // all that were ever given
  Model::EventCounts heard_events_{};  // of the open batch, so far
  std::vector<Engine::ClaimAnswer> heard_answers_;
  std::map<std::string, std::uint64_t> happened_;
};

}  // namespace reprise::sim
