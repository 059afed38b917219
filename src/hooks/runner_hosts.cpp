// The life of a host: requested from the nursery, set up, given batches, ended, settled.
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/duration.h"
#include "hooks/host/host_server.h"
#include "hooks/runner_core.h"

namespace reprise::hooks {
namespace {

constexpr std::uint32_t kHostsInVain = 3;
// A batch may take twice its calls' time, and this for the way there and back.
constexpr auto kWayOfBatch = std::chrono::milliseconds(50);

bool watch(int epoll_fd, int operation, int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  return epoll_ctl(epoll_fd, operation, fd, &event) == 0;
}

std::string describe_end(std::optional<int> wait_status) {
  if (wait_status && WIFSIGNALED(*wait_status)) {
    const char* name = sigabbrev_np(WTERMSIG(*wait_status));
    return name == nullptr ? fmt::format("was ended by signal {}", WTERMSIG(*wait_status))
                           : fmt::format("was ended by SIG{}", name);
  }
  if (wait_status && WIFEXITED(*wait_status)) {
    return fmt::format("exited with status {}", WEXITSTATUS(*wait_status));
  }
  return "has ended";
}

// Whether a hook of this kind can have such a result in such a batch.
bool fits(const CallResult& result, HookKind hook, bool with_payloads) {
  if (std::holds_alternative<HookFailure>(result.outcome)) return true;
  if (std::holds_alternative<NeedsPayload>(result.outcome)) return !with_payloads;
  return std::holds_alternative<FailureVerdict>(result.outcome) == (hook == HookKind::on_failure);
}

// Not of NeedsPayload.
HookOutcome outcome_of(CallResult& result) {
  return std::visit(
      [](auto& outcome) -> HookOutcome {
        if constexpr (std::is_same_v<std::remove_reference_t<decltype(outcome)>, NeedsPayload>) {
          return HookFailure{};
        } else {
          return std::move(outcome);
        }
      },
      result.outcome);
}

}  // namespace

RunnerCore::Host* RunnerCore::find_host(HostNumber number) {
  const auto found = hosts_.find(number);
  return found == hosts_.end() ? nullptr : found->second.get();
}

// --- From the request to the first batch.

void RunnerCore::request_host(Line& line) {
  line.host = ++last_host_;
  hosts_.emplace(line.host, std::make_unique<Host>(line.host, line.id));
  if (!line.trial) ++queue_hosts_;
  keeper_.want(line.host);
}

void RunnerCore::pump_nursery() {
  for (auto& event : keeper_.pump(std::chrono::steady_clock::now())) {
    std::visit([this](auto& what) { on_nursery(what); }, event);
  }
}

void RunnerCore::on_nursery(NurseryKeeper::HostStarted& event) {
  Host* host = find_host(event.report.what.host);
  if (host == nullptr) return;  // its socket closes with the event, which ends it
  auto link = HostLink::make(std::move(event.report));
  // One whose end would not be noticed must not be given anything to do.
  const bool is_watched = link &&
                          watch(epoll_fd_, EPOLL_CTL_ADD, (*link)->socket_fd(), EPOLLIN,
                                tag(Source::host_socket, host->number)) &&
                          watch(epoll_fd_, EPOLL_CTL_ADD, (*link)->pidfd(), EPOLLIN,
                                tag(Source::host_end, host->number));
  if (!is_watched) {
    NurseryKeeper::HostFailed failed{host->number,
                                     link ? "it cannot be watched" : link.error().detail};
    return on_nursery(failed);
  }
  host->link = std::move(*link);
  ++counters_.started;
  ++counters_.hosts;
  Line* line = find_line(host->line);
  const bool is_needed = line != nullptr && (line->scripts || !line->calls.empty());
  if (!is_needed || host->end != End::by_itself) return kill(*host, End::not_needed);
  set_up(*line, *host);
}

void RunnerCore::set_up(Line& line, Host& host) {
  host.state = HostState::setting_up;
  host.scripts = line.calls.empty() ? line.scripts : line.calls.next_scripts();
  const Scripts& scripts = *host.scripts;
  host.watch.emplace(scripts.limits.timeout);
  host.deadline = std::chrono::steady_clock::now() + set_up_time(scripts.limits);
  // First, for scripts that look at it while they are loaded.
  if (const auto values = config_.find(scripts.queue.ns); values != config_.end()) {
    for (const auto& [key, value] : values->second) {
      host.link->send(ConfigChange{.ns = scripts.queue.ns, .key = key, .value = value});
    }
  }
  host.link->send(SetUp{.queue = scripts.queue.name,
                        .sources = scripts.sources,
                        .limits = scripts.limits,
                        .random_seed = random_.next_u64()});
  flush(host);
}

void RunnerCore::on_nursery(NurseryKeeper::HostFailed& event) {
  const auto host = remove_host(event.host);
  if (!host) return;
  Line* line = find_line(host->line);
  if (line == nullptr) return;
  touch(*line);
  host_was_in_vain(*line, line->calls.empty() ? line->scripts : line->calls.next_scripts(),
                   "its process cannot be started: " + event.why);
}

void RunnerCore::on_nursery(NurseryKeeper::HostEnded& event) {
  Host* host = find_host(event.host);
  if (host == nullptr) return;
  host->wait_status = event.wait_status;
  if (host->ended_at) settle(host->number);
}

void RunnerCore::on_nursery(NurseryKeeper::NurseryLost& event) {
  tell_notice(event.why);
  std::vector<HostNumber> known_to_have_ended;
  for (auto& [number, host] : hosts_) {
    if (!host->link) continue;
    host->status_unknown = true;
    host->link->kill();
    if (host->ended_at) known_to_have_ended.push_back(number);
  }
  for (const HostNumber number : known_to_have_ended) settle(number);
}

// --- Messages.

void RunnerCore::flush(Host& host) {
  host.link->flush();
  if (host.link->has_unsent() == host.watched_for_room || host.ended_at) return;
  host.watched_for_room = host.link->has_unsent();
  watch(epoll_fd_, EPOLL_CTL_MOD, host.link->socket_fd(),
        EPOLLIN | (host.watched_for_room ? EPOLLOUT : 0U), tag(Source::host_socket, host.number));
}

void RunnerCore::on_socket(Host& host, std::uint32_t events) {
  if (host.ended_at) return;
  if ((events & EPOLLOUT) != 0) flush(host);
  if ((events & ~std::uint32_t{EPOLLOUT}) == 0) return;
  switch (host.link->receive()) {
    case HostLink::Received::some:
      read_messages(host);
      break;
    case HostLink::Received::nothing:
      break;
    case HostLink::Received::end:
      // It is about to end, and if not, it is of no use any more.
      watch(epoll_fd_, EPOLL_CTL_DEL, host.link->socket_fd(), 0, 0);
      host.link->kill();
      break;
  }
}

void RunnerCore::read_messages(Host& host) {
  while (host.end != End::nonsense) {
    auto message = host.link->next_message();
    if (message && !*message) return;
    if (!message || !std::visit([&](auto& what) { return take_message(host, what); }, **message)) {
      // Also of one that is being ended for something else: what it says is not to be believed.
      host.end = End::by_itself;
      kill(host, End::nonsense);
    }
  }
}

bool RunnerCore::take_message(Host& host, SetUpDone& done) {
  if (host.state != HostState::setting_up) return false;
  host.state = HostState::ready;
  host.problems = std::move(done.problems);
  host.ready_since = std::chrono::steady_clock::now();
  host.idle_since = host.ready_since;
  Line* line = find_line(host.line);
  if (line == nullptr) return true;
  touch(*line);
  if (line->trial) {
    const std::string& problem = host.problems[static_cast<std::size_t>(line->trial->hook)];
    line->trial->usable = problem.empty();
    if (!problem.empty()) {
      finish_trial(*line, Error{Errc::invalid_script, name_of(line->trial->hook) + ": " + problem});
    }
  }
  return true;
}

bool RunnerCore::take_message(Host& host, Results& results) {
  if (host.in_flight.empty()) return false;
  Batch& batch = host.in_flight.front();
  const bool in_place = results.batch == batch.number && results.first == batch.answered &&
                        !results.results.empty() &&
                        results.results.size() <= batch.calls.size() - batch.answered;
  if (!in_place || !std::ranges::all_of(results.results, [&](const CallResult& result) {
        return fits(result, batch.hook, batch.with_payloads);
      })) {
    return false;
  }
  Line* line = find_line(host.line);
  for (CallResult& result : results.results) {
    PendingCall& call = batch.calls[batch.answered++];
    if (batch.abandoned || line == nullptr) continue;
    if (std::holds_alternative<NeedsPayload>(result.outcome)) {
      call.with_payload = true;
      line->calls.put_back(std::move(call));
    } else {
      answer(*line, call, outcome_of(result), std::move(result.log), result.repeatable);
    }
  }
  if (line != nullptr) touch(*line).vain_hosts = 0;
  if (batch.answered < batch.calls.size()) return true;
  host.in_flight.pop_front();
  if (host.in_flight.empty()) {
    host.idle_since = std::chrono::steady_clock::now();
  } else {
    begin_batch_clock(host);
  }
  return true;
}

void RunnerCore::begin_batch_clock(Host& host) {
  const auto calls = static_cast<std::int64_t>(host.in_flight.front().calls.size());
  host.deadline =
      std::chrono::steady_clock::now() + 2 * calls * host.scripts->limits.timeout + kWayOfBatch;
}

// --- The end.

void RunnerCore::kill(Host& host, End why) {
  if (host.end == End::by_itself) host.end = why;
  if (host.link) host.link->kill();
}

void RunnerCore::on_end(HostNumber number) {
  Host* host = find_host(number);
  if (host == nullptr || host->ended_at) return;
  // What it had written before counts.
  while (host->link->receive() == HostLink::Received::some) read_messages(*host);
  host->ended_at = std::chrono::steady_clock::now();
  watch(epoll_fd_, EPOLL_CTL_DEL, host->link->pidfd(), 0, 0);
  watch(epoll_fd_, EPOLL_CTL_DEL, host->link->socket_fd(), 0, 0);
  // How it ended is the nursery's to tell, and of interest only when we did not end it.
  if (host->end != End::by_itself || host->wait_status || host->status_unknown) settle(number);
}

std::unique_ptr<RunnerCore::Host> RunnerCore::remove_host(HostNumber number) {
  const auto found = hosts_.find(number);
  if (found == hosts_.end()) return nullptr;
  std::unique_ptr<Host> host = std::move(found->second);
  hosts_.erase(found);
  if (host->link) --counters_.hosts;
  Line* line = find_line(host->line);
  if (line != nullptr) line->host = 0;
  if (host->line < kFirstTrialLine) --queue_hosts_;
  return host;
}

// A host has ended, and all that it had written was read.
void RunnerCore::settle(HostNumber number) {
  const std::unique_ptr<Host> host = remove_host(number);
  const bool was_lost = host->end == End::by_itself || host->end == End::nonsense;
  if (was_lost) ++counters_.lost;
  const bool took_too_long = host->end == End::call_timeout || host->end == End::batch_timeout ||
                             host->end == End::set_up_timeout;
  if (took_too_long) ++counters_.killed;
  Line* line = find_line(host->line);
  if (line == nullptr) return;
  touch(*line);
  const std::string what_it_did = describe(*host);
  if (was_lost && host->scripts) {
    tell_notice(
        fmt::format("a hook process of queue {} {}", host->scripts->queue.name, what_it_did));
  }

  const bool found_culprit = blame(*line, *host);
  for (Batch& batch : host->in_flight) {
    if (batch.abandoned) continue;
    for (std::size_t i = batch.answered; i < batch.calls.size(); ++i) {
      line->calls.put_back(std::move(batch.calls[i]));
    }
  }
  const bool was_wanted = host->end != End::not_needed && host->end != End::abandoned;
  const bool had_work = host->state == HostState::setting_up || !host->in_flight.empty();
  if (found_culprit) {
    line->vain_hosts = 0;
  } else if (was_wanted && had_work) {
    settle_in_vain(*line, *host, what_it_did);
  }
}

// After "its process".
std::string RunnerCore::describe(const Host& host) {
  switch (host.end) {
    case End::by_itself:
      return describe_end(host.wait_status);
    case End::set_up_timeout:
      return fmt::format("took longer than {}", format_duration(set_up_time(host.scripts->limits)));
    case End::call_timeout:
      return fmt::format("took longer than {}", format_duration(host.scripts->limits.timeout));
    case End::batch_timeout:
      return "did not answer in time";
    case End::nonsense:
      return "answered nonsense";
    case End::not_needed:
    case End::abandoned:
      break;
  }
  return "is not needed any more";
}

// Finds the calls that are to blame for the end of their host. False: there is none.
bool RunnerCore::blame(Line& line, Host& host) {
  const std::string what_it_did = describe(host);
  switch (host.end) {
    case End::by_itself: {
      const auto running = host.link->running_call();
      return running &&
             blame_running(host, *running, HookFault::host_lost, ": its process " + what_it_did);
    }
    case End::call_timeout:
      // It may have answered, and begun another, before the signal reached it.
      return host.overdue == host.link->running_call() &&
             blame_running(host, *host.overdue, HookFault::timeout,
                           " " + what_it_did + " and was stopped");
    case End::nonsense: {
      if (host.in_flight.empty()) return false;
      Batch& batch = host.in_flight.front();
      for (; batch.answered < batch.calls.size(); ++batch.answered) {
        if (batch.abandoned) continue;
        answer(line, batch.calls[batch.answered],
               HookFailure{HookFault::host_lost,
                           name_of(batch.hook) + ": its process " + what_it_did});
      }
      return true;
    }
    case End::not_needed:
    case End::abandoned:
    case End::set_up_timeout:
    case End::batch_timeout:
      break;
  }
  return false;
}

bool RunnerCore::blame_running(Host& host, const RunningCall& running, HookFault fault,
                               const std::string& what_it_did) {
  Batch* batch = find_unanswered(host, running);
  if (batch == nullptr || batch->abandoned) return false;
  // It is told in its turn: the answers of those before it may be lost, and a breaker that hears of
  // failures alone would open for a hook that mostly answers.
  batch->calls[running.place].fault = HookFailure{fault, name_of(batch->hook) + what_it_did};
  return true;
}

RunnerCore::Batch* RunnerCore::find_unanswered(Host& host, const RunningCall& call) {
  const auto batch = std::ranges::find(host.in_flight, call.batch, &Batch::number);
  const bool is_there = batch != host.in_flight.end() && call.place >= batch->answered &&
                        call.place < batch->calls.size();
  return is_there ? &*batch : nullptr;
}

void RunnerCore::settle_in_vain(Line& line, const Host& host, const std::string& what_it_did) {
  const bool is_locked_in = host.wait_status != W_EXITCODE(kHostNotLockedIn, 0);
  if (!is_locked_in) {
    return host_was_in_vain(line, host.scripts, "its process cannot be locked in on this system");
  }
  // A script on trial that ends its process before it is loaded cannot be used.
  if (line.trial && !line.trial->usable && !host.status_unknown) {
    const char* subject = host.end == End::set_up_timeout ? "" : "its process ";
    return finish_trial(
        line, Error{Errc::invalid_script,
                    fmt::format("{}: {}{} while it was loaded", hook_name(line.trial->hook),
                                subject, what_it_did)});
  }
  host_was_in_vain(line, host.scripts, "its process " + what_it_did);
}

void RunnerCore::host_was_in_vain(Line& line, const ScriptsPtr& scripts, const std::string& why) {
  if (scripts && ++line.vain_hosts >= kHostsInVain) give_up(line, *scripts, why);
}

Duration RunnerCore::set_up_time(const HookLimits& limits) {
  return std::max<Duration>(10 * limits.timeout, std::chrono::milliseconds(500));
}

}  // namespace reprise::hooks
