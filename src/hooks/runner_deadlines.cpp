// What happens in the runner because time passes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hooks/runner_core.h"

namespace reprise::hooks {
namespace {

// For the nursery to say how a host ended.
constexpr auto kPatienceForStatus = std::chrono::milliseconds(100);

}  // namespace

Steady RunnerCore::tick() {
  const Steady now = std::chrono::steady_clock::now();
  finish_late_trials(now);
  Steady next = tell_left_out(now);
  std::vector<HostNumber> without_status;
  for (auto& [number, host] : hosts_) {
    if (!host->link) continue;
    if (host->ended_at && now >= *host->ended_at + kPatienceForStatus) {
      without_status.push_back(number);
    } else {
      next = std::min(next, check(*host, now));
    }
  }
  for (const HostNumber number : without_status) settle(number);
  if (now >= keeper_.due()) pump_nursery();
  if (!touched_.empty()) return now;
  return std::min(next, keeper_.due());
}

Steady RunnerCore::check(Host& host, Steady now) {
  if (host.ended_at) return *host.ended_at + kPatienceForStatus;
  if (host.end != End::by_itself) return Steady::max();  // its end will be told
  if (host.state == HostState::setting_up) {
    if (now < host.deadline) return host.deadline;
    kill(host, End::set_up_timeout);
    return Steady::max();
  }
  if (!host.in_flight.empty()) return check_work(host, now);
  const Steady idle_until = host.idle_since + options_.end_idle_after;
  if (now < idle_until) return idle_until;
  kill(host, End::not_needed);
  return Steady::max();
}

Steady RunnerCore::check_work(Host& host, Steady now) {
  const Steady room_by = share_ends(host);
  if (now >= room_by) {
    kill(host, End::not_needed);  // what it had not answered is asked again, in its turn
    return Steady::max();
  }
  if (now >= host.look_at) {
    auto running = host.link->running_call();
    // A page that speaks of no call that is out is not believed.
    if (running && find_unanswered(host, *running) == nullptr) running.reset();
    const auto verdict = host.watch->look(running, now, host.link->cpu_time());
    if (verdict.overdue) {
      host.overdue = running;
      kill(host, End::call_timeout);
      return Steady::max();
    }
    host.look_at = verdict.look_again;
  }
  if (now < host.deadline) return std::min({host.look_at, host.deadline, room_by});
  kill(host, End::batch_timeout);
  return Steady::max();
}

// A share, and time for the call that runs then: so each of its turns answers something.
Steady RunnerCore::share_ends(const Host& host) const {
  if (turns_.empty() || host.line >= kFirstTrialLine) return Steady::max();
  return host.ready_since + kShareOfHost + 2 * host.scripts->limits.timeout;
}

Steady RunnerCore::tell_left_out(Steady now) {
  Steady next = Steady::max();
  std::erase_if(with_lines_left_out_, [&](LineId id) {
    Line* line = find_line(id);
    if (line == nullptr) return true;
    if (now < line->log.ends_at()) {
      next = std::min(next, line->log.ends_at());
      return false;
    }
    const std::uint64_t left_out = line->log.take_left_out(now);
    if (options_.on_log && line->left_out_of) {
      options_.on_log(line->left_out_of->first, line->left_out_of->second,
                      fmt::format("{} more lines were left out", left_out));
    }
    return true;
  });
  return next;
}

}  // namespace reprise::hooks
