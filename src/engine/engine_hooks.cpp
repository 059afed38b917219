// Hooks: who is asked what, and what their answers do. The asking itself is somebody else's
// (hooks/), so nothing here waits: a push or a failure that a hook has a say in stands in its
// queue's line until the answer comes, the breaker opens, or the hook changes.
#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// Of the pushes of one queue that wait for on_enqueue: beyond that the queue takes no more.
constexpr std::uint64_t kBytesInLine = 32ULL << 20;
constexpr std::size_t kPushesInLine = 10'000;
constexpr Duration kNoticeInterval = std::chrono::seconds(1);

constexpr std::array kHookKinds = {HookKind::on_enqueue, HookKind::on_failure};

std::size_t index_of(HookKind hook) { return static_cast<std::size_t>(hook); }

}  // namespace

// --- Definitions --------------------------------------------------------------------------------

void Engine::define_hooks(QueueState& queue, Timestamp now) {
  const QueueConfig& config = queue.record.config;
  const HookLimits limits = hook_limits(config, limits_);
  bool changed = false;
  std::array<std::string, kHookKindCount> versions;
  for (const HookKind kind : kHookKinds) {
    const std::string& source = config.hook(kind);
    std::string& version = versions[index_of(kind)];
    if (!source.empty()) version = hook_version(source);
    const HookLine* line = queue.hook(kind);
    changed |= version != (line == nullptr ? "" : line->version);
    changed |= line != nullptr && limits != queue.hook_limits;
  }
  if (!changed) return;
  // What is out is asked again, of the hooks as they are now.
  std::array<std::deque<HookTicket>, kHookKindCount> tickets;
  for (const HookKind kind : kHookKinds) tickets[index_of(kind)] = call_back(queue, kind);
  queue.hook_limits = limits;
  hook_work_.emplace_back(HookDefinition{.queue = queue.record.number,
                                         .name = queue.record.name,
                                         .sources = config.hooks,
                                         .limits = limits});
  for (const HookKind kind : kHookKinds) {
    std::unique_ptr<HookLine>& line = queue.hooks[index_of(kind)];
    std::string& version = versions[index_of(kind)];
    if (version.empty()) {
      line.reset();
    } else if (line == nullptr || line->version != version) {
      if (line == nullptr) line = std::make_unique<HookLine>();
      line->version = std::move(version);
      line->breaker = {};
      line->verdicts.clear();
      line->last_error.clear();
    }
    if (line == nullptr) {
      for (const HookTicket& ticket : tickets[index_of(kind)]) {
        settle_ticket(queue, ticket, nullptr, Asking::perhaps_not_over, now);
      }
    } else if (!tickets[index_of(kind)].empty()) {
      line->waiting = std::move(tickets[index_of(kind)]);
      lines_to_ask_.emplace(queue.record.number, kind);
    }
  }
  answer_pushes(queue, now);
}

// Takes all calls of a hook back: answers that are still to come are nobody's any more.
std::deque<HookTicket> Engine::call_back(QueueState& queue, HookKind kind) {
  HookLine* line = queue.hook(kind);
  if (line == nullptr) return {};
  if (!line->out.empty()) hook_work_.emplace_back(AbandonedHook{queue.record.number, kind});
  return line->take_all();
}

// The queue is about to go.
void Engine::forget_hooks(QueueState& queue, const Error& why) {
  const QueueNumber number = queue.record.number;
  bool any = false;
  for (const HookKind kind : kHookKinds) {
    any |= queue.hook(kind) != nullptr;
    for (const HookTicket& ticket : call_back(queue, kind)) {
      const auto* job = std::get_if<JobKey>(&ticket);
      if (job == nullptr) continue;
      const auto found = undecided_.find(*job);
      if (found == undecided_.end()) continue;
      answer_fail(found->second, why);
      undecided_.erase(found);
    }
    lines_to_ask_.erase({number, kind});
  }
  if (queue.pushes_in_line) {
    for (const RequestId id : *queue.pushes_in_line) {
      push_answers_.push_back({id, why});
      waiting_pushes_.erase(id);
    }
  }
  if (any) hook_work_.emplace_back(HookDefinition{.queue = number, .name = queue.record.name});
}

// --- Asking -------------------------------------------------------------------------------------

std::optional<Result<PushReply>> Engine::ask_before_push(QueueState& queue, RequestId id,
                                                         Arrivals arrivals, Timestamp now) {
  WaitingPush push{.queue = queue.record.number, .arrivals = std::move(arrivals)};
  for (const Result<Arrival>& arrival : push.arrivals) {
    if (arrival) push.bytes += arrival->record->byte_size();
  }
  if (!queue.pushes_in_line) queue.pushes_in_line = std::make_unique<std::deque<RequestId>>();
  // One push of any size is always taken.
  if (queue.has_pushes_in_line() && (queue.pushed_bytes_in_line + push.bytes > kBytesInLine ||
                                     queue.pushes_in_line->size() >= kPushesInLine)) {
    return Result<PushReply>(
        Error{Errc::overloaded, "too many pushes wait for on_enqueue of queue '" +
                                    queue.record.name.name + "'; try again in a moment"});
  }
  HookLine& line = *queue.hook(HookKind::on_enqueue);
  for (std::size_t i = 0; i < push.arrivals.size(); ++i) {
    if (!push.arrivals[i]) continue;
    if (knows_verdict(line, *push.arrivals[i], now)) continue;
    if (line.breaker.admit(now)) {
      line.waiting.emplace_back(PushPlace{id, i});
      ++push.unanswered;
    } else {
      note_outcome(queue, HookKind::on_enqueue, HookFailure{HookFault::breaker_open, ""}, now);
    }
  }
  // Not before those that came earlier.
  if (push.unanswered == 0 && queue.pushes_in_line->empty()) {
    return Result<PushReply>(accept(queue, std::move(push.arrivals), now));
  }
  if (push.unanswered > 0) lines_to_ask_.emplace(queue.record.number, HookKind::on_enqueue);
  queue.pushes_in_line->push_back(id);
  queue.pushed_bytes_in_line += push.bytes;
  waiting_pushes_.emplace(id, std::move(push));
  return std::nullopt;
}

// A trial of the breaker's has to be a call.
bool Engine::knows_verdict(HookLine& line, Arrival& arrival, Timestamp now) {
  if (line.breaker.state(now) != BreakerState::closed) return false;
  const EnqueueVerdict* verdict = line.verdicts.find(*arrival.record);
  if (verdict == nullptr) return false;
  ++line.succeeded;
  ++line.remembered;
  line.breaker.succeeded();
  take_verdict(arrival, *verdict);
  return true;
}

void Engine::take_verdict(Arrival& arrival, const EnqueueVerdict& verdict) {
  apply_verdict(arrival.record->scheduling, verdict);
  arrival.rejected = verdict.reject;
}

std::vector<HookWork> Engine::take_hook_work(Timestamp now) {
  while (!lines_to_ask_.empty()) {
    const auto [number, kind] = *lines_to_ask_.begin();
    lines_to_ask_.erase(lines_to_ask_.begin());
    if (const auto found = by_number_.find(number); found != by_number_.end()) {
      hand_out_calls(*found->second, kind, now);
    }
  }
  return std::exchange(hook_work_, {});
}

void Engine::hand_out_calls(QueueState& queue, HookKind kind, Timestamp now) {
  HookLine* line = queue.hook(kind);
  if (line == nullptr) return;
  while (!line->waiting.empty() && line->has_room(0)) {
    const HookTicket ticket = line->waiting.front();
    auto message = message_of(queue, ticket, now);
    if (!message) {
      line->waiting.pop_front();
      line->breaker.withdraw();
      continue;
    }
    const std::uint64_t bytes = message->job->byte_size() + message->error.size();
    if (!line->has_room(bytes)) break;
    line->waiting.pop_front();
    const HookCallId id = hook_call_id(queue.record.number, kind, next_hook_call_++);
    line->hand_out(id, ticket, bytes);
    hook_work_.emplace_back(HookCall{id, queue.record.number, kind, std::move(*message)});
  }
}

std::optional<HookMessage> Engine::message_of(QueueState& queue, const HookTicket& ticket,
                                              Timestamp now) {
  if (const auto* place = std::get_if<PushPlace>(&ticket)) {
    return HookMessage{.job = waiting_pushes_.at(place->push).arrivals[place->index]->record};
  }
  const JobKey job = std::get<JobKey>(ticket);
  const auto failed = undecided_.find(job);
  if (failed == undecided_.end()) return std::nullopt;  // dropped meanwhile
  const auto record = ledger_.record(job);
  const auto state = ledger_.state(job);
  if (!record || *record == nullptr || !state || *state == nullptr) {
    // Its bytes cannot be shown to anybody; the burial finds that out again.
    const HookOutcome unreadable = FailureVerdict{.retry = false};
    settle_ticket(queue, ticket, &unreadable, Asking::over, now);
    return std::nullopt;
  }
  const JobState& before = **state;
  return HookMessage{.job = *record,
                     .id = encode_job_id(job.seq),
                     .attempts = before.attempts,
                     .failures = before.failures + 1,
                     .error = failed->second.end.error,
                     .error_type = failed->second.end.error_type,
                     .first_attempt_at = before.first_attempt_at};
}

// --- Answers ------------------------------------------------------------------------------------

void Engine::finish_hook_calls(std::span<const HookResult> results, Timestamp now) {
  absl::btree_set<std::pair<QueueNumber, HookKind>> lines;
  for (const HookResult& result : results) {
    const QueueNumber number = queue_of_call(result.id);
    const HookKind kind = hook_of_call(result.id);
    const auto found = by_number_.find(number);
    HookLine* line = found == by_number_.end() ? nullptr : found->second->hook(kind);
    const auto ticket = line == nullptr ? std::nullopt : line->take_out(result.id);
    if (!ticket) continue;  // called back meanwhile
    QueueState& queue = *found->second;
    note_outcome(queue, kind, result.outcome, now);
    if (result.repeatable) remember(*line, *ticket, result.outcome);
    settle_ticket(queue, *ticket, &result.outcome, Asking::over, now);
    lines.emplace(number, kind);
  }
  for (const auto& [number, kind] : lines) {
    QueueState& queue = *by_number_.at(number);
    if (queue.hook(kind)->breaker.state(now) == BreakerState::open) settle_all(queue, kind, now);
    if (kind == HookKind::on_enqueue) answer_pushes(queue, now);
    lines_to_ask_.emplace(number, kind);
  }
}

// Before the verdict changes what the job was pushed with.
void Engine::remember(HookLine& line, const HookTicket& ticket, const HookOutcome& outcome) {
  const auto* place = std::get_if<PushPlace>(&ticket);
  const auto* verdict = std::get_if<EnqueueVerdict>(&outcome);
  if (place == nullptr || verdict == nullptr) return;
  line.verdicts.learn(*waiting_pushes_.at(place->push).arrivals[place->index]->record, *verdict);
}

void Engine::settle_all(QueueState& queue, HookKind kind, Timestamp now) {
  const HookOutcome not_asked = HookFailure{HookFault::breaker_open, ""};
  for (const HookTicket& ticket : call_back(queue, kind)) {
    note_outcome(queue, kind, not_asked, now);
    settle_ticket(queue, ticket, &not_asked, Asking::perhaps_not_over, now);
  }
}

// `outcome` null: there is no hook any more.
void Engine::settle_ticket(QueueState& queue, const HookTicket& ticket, const HookOutcome* outcome,
                           Asking asking, Timestamp now) {
  if (const auto* place = std::get_if<PushPlace>(&ticket)) {
    WaitingPush& push = waiting_pushes_.at(place->push);
    --push.unanswered;
    Arrival& arrival = *push.arrivals[place->index];
    // The record is about to be changed, so nobody else may be looking at it.
    if (asking == Asking::perhaps_not_over) {
      arrival.record = std::make_shared<JobRecord>(*arrival.record);
    }
    const auto* verdict = outcome == nullptr ? nullptr : std::get_if<EnqueueVerdict>(outcome);
    if (verdict != nullptr) take_verdict(arrival, *verdict);  // otherwise as it was pushed
    return;
  }
  const auto found = undecided_.find(std::get<JobKey>(ticket));
  if (found == undecided_.end()) return;  // dropped meanwhile
  const Undecided failed = std::move(found->second);
  undecided_.erase(found);
  auto result = settle_failure(queue, failed, outcome, now);
  if (!result) {
    // Its state cannot be read any more, so nothing can be said about its attempts.
    if (failed.end.outcome == AttemptOutcome::lease_expired) ++queue.totals.lease_expired;
    end_lease(queue, failed.lease, LeaseEnd::failed, now);
    quarantine(queue, failed.lease.job, result.error(), now);
    serve_waiting(queue, now);
  }
  answer_fail(failed, std::move(result));
}

// Those at the front of the line that have all their answers; the others keep their place.
void Engine::answer_pushes(QueueState& queue, Timestamp now) {
  while (queue.has_pushes_in_line()) {
    const RequestId id = queue.pushes_in_line->front();
    const auto found = waiting_pushes_.find(id);
    if (found->second.unanswered > 0) return;
    queue.pushes_in_line->pop_front();
    queue.pushed_bytes_in_line -= found->second.bytes;
    Arrivals arrivals = std::move(found->second.arrivals);
    waiting_pushes_.erase(found);
    push_answers_.push_back({id, accept(queue, std::move(arrivals), now)});
  }
}

void Engine::answer_fail(const Undecided& failed, Result<Failed> result) {
  if (!failed.request) return;
  const auto found = waiting_fails_.find(*failed.request);
  if (found == waiting_fails_.end()) return;  // given up
  WaitingFail& fail = found->second;
  fail.results[failed.index] = std::move(result);
  if (--fail.undecided > 0) return;
  fail_answers_.push_back({*failed.request, std::move(fail.results)});
  waiting_fails_.erase(found);
}

void Engine::give_up_hook_calls(const Error& why) {
  for (auto& [id, push] : waiting_pushes_) push_answers_.push_back({id, why});
  for (const auto& [job, failed] : undecided_) answer_fail(failed, why);
}

// --- What is counted and told -------------------------------------------------------------------

void Engine::note_outcome(QueueState& queue, HookKind kind, const HookOutcome& outcome,
                          Timestamp now) {
  HookLine& line = *queue.hook(kind);
  const auto* failure = std::get_if<HookFailure>(&outcome);
  if (failure == nullptr) {
    ++line.succeeded;
    if (line.breaker.succeeded()) notice(queue, kind, "answers again; its breaker is closed");
    return;
  }
  ++line.failed[static_cast<std::size_t>(failure->fault)];
  if (failure->fault == HookFault::breaker_open) return;
  line.last_error = failure->message;
  line.last_error_at = now;
  if (now >= line.next_notice) {
    std::string text = "failed: " + failure->message;
    if (line.untold > 0) text += " (and " + std::to_string(line.untold) + " more before)";
    notice(queue, kind, std::move(text));
    line.next_notice = now + kNoticeInterval;
    line.untold = 0;
  } else {
    ++line.untold;
  }
  if (!line.breaker.failed(now)) return;
  ++line.opened;
  notice(queue, kind,
         "has failed " + std::to_string(line.breaker.failures_in_a_row()) +
             " times in a row and is not asked for " + humanize_duration(HookBreaker::kOpenFor) +
             "; the last error: " + failure->message);
}

void Engine::notice(const QueueState& queue, HookKind kind, std::string text) {
  hook_notices_.push_back({queue.record.name, kind, std::move(text)});
}

}  // namespace reprise
