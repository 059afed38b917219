// Hooks: who is asked what, and what their answers do.
#include <algorithm>
#include <utility>

#include "model/limits.h"
#include "sim/model.h"
#include "sim/violation.h"

namespace reprise::sim {
namespace {

using namespace std::chrono_literals;

Error error(Errc code) { return {code, ""}; }

constexpr std::array kHookKinds = {HookKind::on_enqueue, HookKind::on_failure};

std::size_t index_of(HookKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

// --- Definitions.

// A script or a limit that is new calls all back that is out; what waits is asked again, or of a
// hook that is gone, decided without it.
void Model::define_hooks(Queue& queue, Timestamp now) {
  const QueueConfig& config = queue.record.config;
  const HookLimits limits = hook_limits(config, Limits{});
  const auto version_of = [&](HookKind kind) {
    return config.hook(kind).empty() ? std::string() : hook_version(config.hook(kind));
  };
  const bool changed = std::ranges::any_of(kHookKinds, [&](HookKind kind) {
    const auto& hook = queue.hooks[index_of(kind)];
    return version_of(kind) != (hook ? hook->stats.version : "") ||
           (hook && limits != queue.hook_limits);
  });
  if (!changed) return;
  std::array<std::deque<Ticket>, kHookKindCount> tickets;
  for (const HookKind kind : kHookKinds) tickets[index_of(kind)] = call_back(queue, kind);
  queue.hook_limits = limits;
  hook_work_.emplace_back(
      HookDefinition{queue.record.number, queue.record.name, config.hooks, limits});
  for (const HookKind kind : kHookKinds) {
    std::optional<Hook>& hook = queue.hooks[index_of(kind)];
    const std::string version = version_of(kind);
    if (version.empty()) {
      hook.reset();
      for (const Ticket& ticket : tickets[index_of(kind)]) {
        settle_ticket(queue, kind, ticket, nullptr, now);
      }
      continue;
    }
    if (!hook) hook = Hook{};
    if (hook->stats.version != version) {
      hook->breaker = BreakerState::closed;
      hook->stats.version = version;
      hook->stats.failures_in_a_row = 0;
      hook->stats.open_until = {};
      hook->stats.last_error.clear();
    }
    for (Ticket& ticket : tickets[index_of(kind)]) {
      ticket.call = 0;
      hook->line.push_back(ticket);
    }
  }
  answer_pushes(queue, now);
}

std::deque<Model::Ticket> Model::call_back(Queue& queue, HookKind kind) {
  std::optional<Hook>& hook = queue.hooks[index_of(kind)];
  if (!hook) return {};
  const bool any_out =
      std::ranges::any_of(hook->line, [](const Ticket& ticket) { return ticket.call != 0; });
  if (any_out) hook_work_.emplace_back(AbandonedHook{queue.record.number, kind});
  return std::exchange(hook->line, {});
}

// The queue goes.
void Model::forget_hooks(Queue& queue) {
  const bool any = queue.hooks[0] || queue.hooks[1];
  for (const HookKind kind : kHookKinds) call_back(queue, kind);
  for (const auto& [seq, failure] : queue.undecided) {
    answer_fail(failure, error(Errc::queue_not_found));
  }
  for (const WaitingPush& push : queue.pushes) {
    push_answers_.emplace(push.id, error(Errc::queue_not_found));
  }
  if (any) {
    hook_work_.emplace_back(
        HookDefinition{queue.record.number, queue.record.name, {}, HookLimits{}});
  }
}

// --- Asking.

std::optional<Result<PushReply>> Model::ask_before_push(Queue& queue, WaitingPush push,
                                                        Timestamp now) {
  Hook& hook = *queue.hooks[index_of(HookKind::on_enqueue)];
  for (std::size_t i = 0; i < push.jobs.size(); ++i) {
    if (!push.jobs[i]) continue;
    if (admit_call(hook, now)) {
      hook.line.push_back({.push = push.id, .index = i});
      ++push.unanswered;
    } else {
      note_outcome(hook, HookFailure{HookFault::breaker_open, ""}, now);
    }
  }
  if (push.unanswered == 0 && queue.pushes.empty()) return accept(queue, push, now);
  queue.pushes.push_back(std::move(push));
  return std::nullopt;
}

// Of a breaker whose time is over one call is let through.
bool Model::admit_call(Hook& hook, Timestamp now) {
  if (hook.breaker == BreakerState::closed) return true;
  if (hook.breaker == BreakerState::trial || now < hook.stats.open_until) return false;
  hook.breaker = BreakerState::trial;
  return true;
}

// Runs are too small to come near the window of a hook: all that waits is asked.
std::vector<HookWork> Model::take_hook_work(std::span<const HookCallId> ids) {
  std::vector<HookWork> work = std::exchange(hook_work_, {});
  std::size_t asked = 0;
  std::map<QueueNumber, Queue*> by_number;
  for (auto& [name, queue] : queues_) by_number[queue.record.number] = &queue;
  for (const auto& numbered : by_number) {
    Queue* const queue = numbered.second;
    for (const HookKind kind : kHookKinds) {
      std::optional<Hook>& hook = queue->hooks[index_of(kind)];
      if (!hook) continue;
      std::erase_if(hook->line, [&](const Ticket& ticket) {
        const bool gone = kind == HookKind::on_failure && ticket.call == 0 &&
                          !queue->undecided.contains(ticket.failed);
        // A trial that is not made makes room for another.
        if (gone && hook->breaker == BreakerState::trial) hook->breaker = BreakerState::open;
        return gone;
      });
      for (Ticket& ticket : hook->line) {
        if (ticket.call != 0) continue;
        require(asked < ids.size(), "a hook is not asked");
        ticket.call = ids[asked++];
        work.emplace_back(HookCall{ticket.call, numbered.first, kind, message_of(*queue, ticket)});
      }
    }
  }
  return work;
}

HookMessage Model::message_of(const Queue& queue, const Ticket& ticket) {
  if (ticket.push != 0) {
    const auto push = std::ranges::find(queue.pushes, ticket.push, &WaitingPush::id);
    const NewJob& job = *push->jobs[ticket.index];
    const JobRecord record{.priority = job.priority,
                           .payload_kind = job.payload_kind,
                           .key = job.key,
                           .headers = job.headers,
                           .scheduling = job.scheduling,
                           .payload = job.payload};
    return {.job = std::make_shared<const JobRecord>(record)};
  }
  const Job& job = queue.jobs.at(ticket.failed);
  const FailItem& how = queue.undecided.at(ticket.failed).how;
  return {.job = std::make_shared<const JobRecord>(job.record),
          .id = encode_job_id(ticket.failed),
          .attempts = job.state.attempts,
          .failures = job.state.failures + 1,
          .error = how.error,
          .error_type = how.error_type,
          .first_attempt_at = job.state.first_attempt_at};
}

// --- Answers.

void Model::finish_hook_calls(std::span<const HookResult> results, Timestamp now) {
  std::set<std::pair<QueueNumber, HookKind>> answered;
  for (const HookResult& result : results) {
    for (auto& [name, queue] : queues_) {
      for (const HookKind kind : kHookKinds) {
        std::optional<Hook>& hook = queue.hooks[index_of(kind)];
        if (!hook) continue;
        const auto found = std::ranges::find(hook->line, result.id, &Ticket::call);
        if (found == hook->line.end()) continue;
        const Ticket ticket = *found;
        hook->line.erase(found);
        note_outcome(*hook, result.outcome, now);
        settle_ticket(queue, kind, ticket, &result.outcome, now);
        answered.emplace(queue.record.number, kind);
      }
    }
  }
  for (const auto& [number, kind] : answered) {
    Queue& queue = *find(number);
    Hook& hook = *queue.hooks[index_of(kind)];
    if (hook.breaker == BreakerState::open) {
      // Nobody waits for a hook that is not asked.
      const HookOutcome not_asked = HookFailure{HookFault::breaker_open, ""};
      for (const Ticket& ticket : call_back(queue, kind)) {
        note_outcome(hook, not_asked, now);
        settle_ticket(queue, kind, ticket, &not_asked, now);
      }
    }
    answer_pushes(queue, now);
  }
}

// Three failures in a row open the breaker for ten seconds, and so does a trial that fails.
void Model::note_outcome(Hook& hook, const HookOutcome& outcome, Timestamp now) {
  HookStats& stats = hook.stats;
  const auto* failure = std::get_if<HookFailure>(&outcome);
  if (failure == nullptr) {
    ++stats.succeeded;
    if (hook.breaker == BreakerState::open) return;
    hook.breaker = BreakerState::closed;
    stats.failures_in_a_row = 0;
    stats.open_until = {};
    return;
  }
  ++stats.failed[static_cast<std::size_t>(failure->fault)];
  if (failure->fault == HookFault::breaker_open) return;
  stats.last_error = failure->message;
  stats.last_error_at = now;
  if (hook.breaker == BreakerState::open) return;
  ++stats.failures_in_a_row;
  if (hook.breaker == BreakerState::closed && stats.failures_in_a_row < 3) return;
  hook.breaker = BreakerState::open;
  stats.open_until = now + 10s;
  ++stats.opened;
}

HookStats Model::shown_stats(const Hook& hook, Timestamp now) {
  HookStats stats = hook.stats;
  const bool over = hook.breaker == BreakerState::open && stats.open_until <= now;
  stats.breaker = over ? BreakerState::trial : hook.breaker;
  stats.in_flight = hook.line.size();
  return stats;
}

// `outcome` null: there is no hook any more.
void Model::settle_ticket(Queue& queue, HookKind kind, const Ticket& ticket,
                          const HookOutcome* outcome, Timestamp now) {
  if (kind == HookKind::on_enqueue) {
    WaitingPush& push = *std::ranges::find(queue.pushes, ticket.push, &WaitingPush::id);
    --push.unanswered;
    const auto* verdict = outcome == nullptr ? nullptr : std::get_if<EnqueueVerdict>(outcome);
    if (verdict == nullptr) return;  // as it was pushed
    Scheduling& scheduling = push.jobs[ticket.index]->scheduling;
    scheduling.fairness_key = verdict->fairness_key.value_or(scheduling.fairness_key);
    scheduling.weight = verdict->weight.value_or(scheduling.weight);
    if (verdict->throttle_keys) {
      // Each once, in the order of their first mention.
      scheduling.throttle_keys.clear();
      for (const std::string& key : *verdict->throttle_keys) {
        if (std::ranges::count(scheduling.throttle_keys, key) == 0) {
          scheduling.throttle_keys.push_back(key);
        }
      }
    }
    push.rejected[ticket.index] = verdict->reject;
    return;
  }
  const auto found = queue.undecided.find(ticket.failed);
  if (found == queue.undecided.end()) return;  // dropped meanwhile
  const Undecided failure = found->second;
  queue.undecided.erase(found);
  const Held lease{&queue, ticket.failed, &queue.jobs.at(ticket.failed)};
  answer_fail(failure, settle_failure(lease, failure, outcome, now));
}

// In the order in which they came.
void Model::answer_pushes(Queue& queue, Timestamp now) {
  while (!queue.pushes.empty() && queue.pushes.front().unanswered == 0) {
    const WaitingPush push = std::move(queue.pushes.front());
    queue.pushes.pop_front();
    push_answers_.emplace(push.id, accept(queue, push, now));
  }
}

void Model::answer_fail(const Undecided& failure, Result<Failed> result) {
  if (!failure.request) return;  // a lease that ran out
  auto& [results, undecided] = waiting_fails_.at(*failure.request);
  results[failure.index] = std::move(result);
  if (--undecided > 0) return;
  fail_answers_.emplace(*failure.request, std::move(results));
  waiting_fails_.erase(*failure.request);
}

// --- Runtime values.

ConfigEntry Model::set_config(ConfigEntry entry, Timestamp now) {
  entry.updated_at = now;
  config_[{entry.ns, entry.key}] = entry;
  hook_work_.emplace_back(ConfigChange{entry.ns, entry.key, entry.value});
  return entry;
}

Result<ConfigEntry> Model::unset_config(const std::string& ns, const std::string& key) {
  const auto found = config_.find({ns, key});
  if (found == config_.end()) return error(Errc::config_not_found);
  ConfigEntry entry = found->second;
  config_.erase(found);
  hook_work_.emplace_back(ConfigChange{ns, key, std::nullopt});
  return entry;
}

}  // namespace reprise::sim
