#include "hooks/runner_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace reprise::hooks {
namespace {

// With some to spare for what a frame adds.
constexpr std::uint64_t kMaxMessageBytes = kMaxFrameBytes - (4U << 20);

// So that a host has its next batch when it is done with one.
constexpr std::size_t kBatchesInFlight = 2;
// What a busy line may keep its host for while others wait for one.

std::size_t index(HookKind hook) { return static_cast<std::size_t>(hook); }

}  // namespace

std::string name_of(HookKind hook) { return std::string(hook_name(hook)); }

RunnerCore::RunnerCore(const HookRunnerOptions& options, RunnerCounters& counters, int epoll_fd)
    : options_(options),
      counters_(counters),
      epoll_fd_(epoll_fd),
      keeper_(options.program, epoll_fd, tag(Source::nursery, 0)) {}

// --- What comes in.

void RunnerCore::take_work(std::vector<HookWork> work) {
  for (HookWork& item : work) {
    std::visit([this](auto& what) { take(std::move(what)); }, item);
  }
}

void RunnerCore::take(HookDefinition definition) {
  const bool has_hooks = std::ranges::any_of(
      definition.sources, [](const std::string& source) { return !source.empty(); });
  Line* line = find_line(definition.queue);
  if (line == nullptr && !has_hooks) return;
  if (line == nullptr) {
    line = lines_.emplace(definition.queue, std::make_unique<Line>(definition.queue))
               .first->second.get();
  }
  const bool unchanged = line->scripts && line->scripts->sources == definition.sources &&
                         line->scripts->limits == definition.limits;
  if (unchanged) return;
  line->scripts = has_hooks ? make_scripts(std::move(definition.name),
                                           std::move(definition.sources), definition.limits)
                            : nullptr;
  line->vain_hosts = 0;
  touch(*line);
}

void RunnerCore::take(HookCall call) {
  REPRISE_CHECK(call.message.job != nullptr);
  Line* line = find_line(call.queue);
  if (line == nullptr || !line->scripts || !line->scripts->has(call.hook)) {
    results_.push_back(
        {.id = call.id,
         .outcome = HookFailure{HookFault::error, "the queue has no " + name_of(call.hook)}});
    return;
  }
  if (call.message.job->byte_size() + call.message.error.size() > kMaxMessageBytes) {
    results_.push_back(
        {.id = call.id,
         .outcome = HookFailure{HookFault::memory, "the job is too large to tell a hook about"}});
    return;
  }
  line->calls.add({.id = call.id,
                   .hook = call.hook,
                   .message = std::move(call.message),
                   .scripts = line->scripts,
                   .with_payload = line->scripts->read_payloads[index(call.hook)]});
  touch(*line);
}

void RunnerCore::take(const AbandonedHook& abandoned) {
  Line* line = find_line(abandoned.queue);
  if (line == nullptr) return;
  line->calls.drop(abandoned.hook);
  if (Host* host = find_host(line->host); host != nullptr) {
    for (Batch& batch : host->in_flight) {
      if (batch.hook != abandoned.hook) continue;
      batch.abandoned = true;
      kill(*host, End::abandoned);
    }
  }
  touch(*line);
}

void RunnerCore::take(const ConfigChange& change) {
  auto& values = config_[change.ns];
  if (change.value) {
    values.insert_or_assign(change.key, *change.value);
  } else {
    values.erase(change.key);
    if (values.empty()) config_.erase(change.ns);
  }
  for (auto& [number, host] : hosts_) {
    // One that is not set up yet gets all values then.
    if (!host->scripts || host->scripts->queue.ns != change.ns) continue;
    host->link->send(change);
    flush(*host);
  }
}

// --- Lines.

RunnerCore::Line* RunnerCore::find_line(LineId id) {
  const auto found = lines_.find(id);
  return found == lines_.end() ? nullptr : found->second.get();
}

RunnerCore::Line& RunnerCore::touch(Line& line) {
  if (!std::exchange(line.touched, true)) touched_.push_back(line.id);
  return line;
}

void RunnerCore::advance() {
  do {
    start_trials();
    for (const LineId id : std::exchange(touched_, {})) {
      Line* line = find_line(id);
      if (line == nullptr) continue;
      line->touched = false;
      advance(*line);
    }
    serve_turns();
    pump_nursery();
  } while (!touched_.empty());  // a line may touch itself once more
}

void RunnerCore::advance(Line& line) {
  Host* host = find_host(line.host);
  // Those that ended their host, once all before them are answered.
  if (host == nullptr || host->in_flight.empty()) {
    while (!line.calls.empty() && line.calls.next_has_fault()) {
      PendingCall call = line.calls.take_next();
      answer(line, call, std::move(*call.fault));
    }
  }
  if (finish_if_answered(line)) return;
  if (host != nullptr) {
    if (host->state == HostState::ready && host->end == End::by_itself) feed(line, *host);
    return;
  }
  const bool wants_host = !line.calls.empty() || line.trial;
  if (wants_host) {
    want_host(line);
  } else {
    drop_if_unused(line);
  }
}

void RunnerCore::feed(Line& line, Host& host) {
  refuse_unusable(line, host);
  if (finish_if_answered(line)) return;
  const ScriptsPtr& next = line.calls.empty() ? line.scripts : line.calls.next_scripts();
  const bool is_done = next != host.scripts || has_had_its_share(line, host);
  if (is_done) {
    if (host.in_flight.empty()) kill(host, End::not_needed);
    return;
  }
  while (host.in_flight.size() < kBatchesInFlight && !line.calls.empty() &&
         !line.calls.next_has_fault() && line.calls.next_scripts() == host.scripts) {
    send_batch(line, host);
  }
  flush(host);
}

void RunnerCore::send_batch(Line& line, Host& host) {
  Batch batch{.number = ++host.batches, .calls = line.calls.take_batch()};
  batch.hook = batch.calls.front().hook;
  batch.with_payloads = batch.calls.front().with_payload;
  RunBatch message{.batch = batch.number, .hook = batch.hook, .with_payloads = batch.with_payloads};
  message.messages.reserve(batch.calls.size());
  // There and back again: cheaper than copies.
  for (PendingCall& call : batch.calls) message.messages.push_back(std::move(call.message));
  host.link->send(message);
  for (std::size_t i = 0; i < batch.calls.size(); ++i) {
    batch.calls[i].message = std::move(message.messages[i]);
  }
  host.in_flight.push_back(std::move(batch));
  if (host.in_flight.size() > 1) return;
  const Steady now = std::chrono::steady_clock::now();
  host.watch->begin(now, host.link->cpu_time());
  host.look_at = now + host.scripts->limits.timeout;
  begin_batch_clock(host);
}

// A stored script that does not load any more: what it is asked is an error of its own.
void RunnerCore::refuse_unusable(Line& line, const Host& host) {
  for (std::size_t i = 0; i < kHookKindCount; ++i) {
    if (host.problems[i].empty()) continue;
    for (const PendingCall& call :
         line.calls.take_all_of(*host.scripts, static_cast<HookKind>(i))) {
      answer(line, call, HookFailure{HookFault::error, host.problems[i]});
    }
  }
}

bool RunnerCore::has_had_its_share(const Line& line, const Host& host) const {
  return !turns_.empty() && !line.trial && !line.calls.empty() &&
         std::chrono::steady_clock::now() - host.ready_since >= kShareOfHost;
}

void RunnerCore::want_host(Line& line) {
  if (line.trial) {
    request_host(line);  // those are few, and bounded by themselves
  } else if (!std::exchange(line.waits_for_turn, true)) {
    turns_.push_back(line.id);
  }
}

void RunnerCore::serve_turns() {
  while (!turns_.empty() && queue_hosts_ < options_.max_hosts) {
    Line* line = find_line(turns_.front());
    turns_.pop_front();
    if (line == nullptr) continue;
    line->waits_for_turn = false;
    if (line->host == 0 && !line->calls.empty()) request_host(*line);
  }
  const auto makes_room = [](const auto& entry) { return entry.second->end != End::by_itself; };
  auto leaving = static_cast<std::size_t>(std::ranges::count_if(hosts_, makes_room));
  for (; leaving < turns_.size(); ++leaving) {
    Host* idle = longest_idle_host();
    if (idle == nullptr) return;
    kill(*idle, End::not_needed);
  }
}

RunnerCore::Host* RunnerCore::longest_idle_host() {
  Host* longest = nullptr;
  for (auto& [number, host] : hosts_) {
    const Line* line = find_line(host->line);
    if (!host->is_idle() || line == nullptr || line->trial || !line->calls.empty()) continue;
    if (longest == nullptr || host->idle_since < longest->idle_since) longest = host.get();
  }
  return longest;
}

void RunnerCore::drop_if_unused(Line& line) {
  if (line.scripts || !line.calls.empty() || line.host != 0 || line.trial) return;
  lines_.erase(line.id);
}

// --- What goes out.

void RunnerCore::answer(Line& line, const PendingCall& call, HookOutcome outcome,
                        std::vector<std::string> log, bool repeatable) {
  if (line.trial) {
    line.trial->results[call.id] = {.outcome = std::move(outcome), .log = std::move(log)};
    --line.trial->unanswered;
    touch(line);
    return;
  }
  for (const std::string& text : log) {
    if (line.log.admit(std::chrono::steady_clock::now())) {
      if (options_.on_log) options_.on_log(call.scripts->queue, call.hook, text);
      continue;
    }
    line.left_out_of = {call.scripts->queue, call.hook};
    if (std::ranges::find(with_lines_left_out_, line.id) == with_lines_left_out_.end()) {
      with_lines_left_out_.push_back(line.id);
    }
  }
  results_.push_back({.id = call.id, .outcome = std::move(outcome), .repeatable = repeatable});
}

void RunnerCore::give_up(Line& line, const Scripts& scripts, const std::string& why) {
  line.vain_hosts = 0;
  tell_notice(fmt::format("hooks of queue {} cannot run: {}", scripts.queue.name, why));
  if (line.trial) {
    return finish_trial(line,
                        Error{Errc::hooks_unavailable, name_of(line.trial->hook) + ": " + why});
  }
  for (const PendingCall& call : line.calls.take_all_of(scripts)) {
    answer(line, call, HookFailure{HookFault::host_lost, name_of(call.hook) + ": " + why});
  }
}

void RunnerCore::tell_notice(std::string_view text) {
  const Steady now = std::chrono::steady_clock::now();
  if (notices_.has_left_out() && now >= notices_.ends_at()) {
    const std::uint64_t left_out = notices_.take_left_out(now);
    if (options_.on_notice) {
      options_.on_notice(fmt::format("{} more notices about hooks were left out", left_out));
    }
  }
  if (notices_.admit(now) && options_.on_notice) options_.on_notice(text);
}

void RunnerCore::flush_results() {
  if (results_.empty()) return;
  if (options_.on_results) options_.on_results(std::exchange(results_, {}));
  results_.clear();
}

void RunnerCore::on_event(std::uint64_t event_tag, std::uint32_t events) {
  const auto number = static_cast<HostNumber>(event_tag >> 2);
  switch (static_cast<Source>(event_tag & 3)) {
    case Source::owner:
      break;
    case Source::nursery:
      pump_nursery();
      break;
    case Source::host_socket:
      if (Host* host = find_host(number); host != nullptr) on_socket(*host, events);
      break;
    case Source::host_end:
      on_end(number);
      break;
  }
}

}  // namespace reprise::hooks
