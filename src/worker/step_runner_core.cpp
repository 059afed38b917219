#include "worker/step_runner_core.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace reprise::worker {
namespace {

constexpr std::uint64_t kHostTag = 1;
// What belongs to a step: the tag is its id with one of these.
enum Part : std::uint64_t { kControl = 0, kInput = 1, kOutput = 2, kErrors = 3 };
constexpr std::uint64_t kParts = 4;

constexpr std::uint64_t kAskedAtOnce = 32;
constexpr auto kAskAgain = std::chrono::milliseconds(20);
constexpr auto kFirstPause = std::chrono::milliseconds(20);
constexpr auto kLongestPause = std::chrono::seconds(2);
// A step host that lived so long was a good one: the next need not wait.
constexpr auto kGoodLife = std::chrono::seconds(2);
// So many that do not get ready, one after the other: steps that wait are told.
constexpr int kHostsToFail = 3;
constexpr Duration kLongestGrace = std::chrono::hours(24);

StepEnd not_started(std::string detail) {
  return {.kind = StepEnd::Kind::not_started, .detail = std::move(detail)};
}
StepEnd lost(std::string detail) {
  return {.kind = StepEnd::Kind::lost, .detail = std::move(detail)};
}

}  // namespace

StepRunnerCore::StepRunnerCore(const StepRunnerOptions& options, int epoll_fd,
                               std::uint64_t descriptors)
    : options_(options), epoll_fd_(epoll_fd), descriptors_(descriptors) {}

void StepRunnerCore::warn(const std::string& text) const {
  if (options_.warn) options_.warn(text);
}

// --- steps -------------------------------------------------------------------------------------

void StepRunnerCore::start(StepId id, StepSpec spec, std::shared_ptr<StepObserver> observer) {
  if (ending_) return observer->on_end(not_started("the server is shutting down"));
  steps_.emplace(id, Step{.observer = std::move(observer), .spec = std::move(spec)});
  waiting_.push_back(id);
}

void StepRunnerCore::stop(StepId id, StopManner manner) {
  const auto found = steps_.find(id);
  if (found == steps_.end()) return;
  Step& step = found->second;
  if (step.state == State::waiting) {
    return finish(found, not_started("it was stopped before it could start"));
  }
  if (manner == StopManner::at_once) return kill(step);
  if (step.killed || step.kill_at) return;
  step.link->order(StepOrder::terminate);
  step.kill_at = std::chrono::steady_clock::now() + std::min(options_.grace, kLongestGrace);
  overdue_.emplace(*step.kill_at, id);
}

void StepRunnerCore::kill(Step& step) {
  if (!step.killed) step.link->order(StepOrder::kill);
  step.killed = true;
}

void StepRunnerCore::kill_overdue(Steady now) {
  while (!overdue_.empty() && overdue_.begin()->first <= now) {
    const auto found = steps_.find(overdue_.begin()->second);
    overdue_.erase(overdue_.begin());
    if (found != steps_.end()) kill(found->second);
  }
}

StepLink::Sink StepRunnerCore::sink_of(const Step& step) const {
  return [&step](StepStream stream, std::string_view bytes) {
    step.observer->on_output(stream, bytes);
  };
}

void StepRunnerCore::finish(Steps::iterator step, StepEnd end) {
  if (step->second.link) step->second.link->drain(sink_of(step->second));
  if (step->second.kill_at) overdue_.erase({*step->second.kill_at, step->first});
  if (step->second.state == State::asked && step->second.host == host_number_) --asked_;
  const auto observer = std::move(step->second.observer);
  steps_.erase(step);
  observer->on_end(end);
}

void StepRunnerCore::on_control(Steps::iterator step) {
  StepLink& link = *step->second.link;
  if (auto end = link.take_report()) return finish(step, std::move(*end));
  // Killed: its step host ends what it had and tells, unless that is gone as well.
  if (link.control_fd() < 0 && step->second.host != host_number_) {
    finish(step, lost("its step host was killed"));
  }
}

void StepRunnerCore::on_event(std::uint64_t tag) {
  if (tag == kHostTag) return receive_from_host();
  const auto found = steps_.find(tag / kParts);
  if (found == steps_.end() || !found->second.link) return;  // it has ended since
  StepLink& link = *found->second.link;
  switch (static_cast<Part>(tag % kParts)) {
    case kControl:
      return on_control(found);
    case kInput:
      return link.feed();
    case kOutput:
      return link.read_output(StepStream::out, sink_of(found->second));
    case kErrors:
      return link.read_output(StepStream::err, sink_of(found->second));
  }
}

void StepRunnerCore::watch(StepId id, const StepLink& link) {
  const auto add = [&](int fd, std::uint32_t events, Part part) {
    epoll_event event{.events = events, .data = {.u64 = id * kParts + part}};
    if (fd >= 0) epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  };
  add(link.control_fd(), EPOLLIN, kControl);
  add(link.input_fd(), EPOLLOUT, kInput);
  add(link.output_fd(StepStream::out), EPOLLIN, kOutput);
  add(link.output_fd(StepStream::err), EPOLLIN, kErrors);
}

// --- the step host -----------------------------------------------------------------------------

void StepRunnerCore::when_ready(std::function<void()> ready) {
  if (host_ready_) return ready();
  ready_.push_back(std::move(ready));
}

StepRunnerCore::Steady StepRunnerCore::advance() {
  const Steady now = std::chrono::steady_clock::now();
  kill_overdue(now);
  if (!host_ && !ending_ && now >= host_not_before_) start_host(now);
  ask();
  Steady due = overdue_.empty() ? Steady::max() : overdue_.begin()->first;
  if (!host_ && !ending_) due = std::min(due, host_not_before_);
  // It did not take them for some reason that no event tells the end of.
  if (host_ready_ && !waiting_.empty() && asked_ < kAskedAtOnce) {
    due = std::min(due, now + kAskAgain);
  }
  return due;
}

void StepRunnerCore::start_host(Steady now) {
  host_not_before_ = now;
  host_error_.clear();
  auto started = StepHostLink::start(options_.program, options_.lock_file, descriptors_);
  if (!started) return lose_host(started.error().detail);
  host_ = std::move(*started);
  ++host_number_;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kHostTag}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, host_->fd(), &event);
}

void StepRunnerCore::receive_from_host() {
  while (host_) {
    const auto report = host_->receive();
    if (!report) return lose_host(host_error_.empty() ? report.error().detail : host_error_);
    if (!*report) return;
    on_report(**report);
  }
}

void StepRunnerCore::on_report(const HostReport& report) {
  const auto found = steps_.find(report.step);
  switch (report.news) {
    case HostNews::ready:
      host_ready_ = true;
      host_ready_at_ = std::chrono::steady_clock::now();
      hosts_failed_ = 0;
      for (const auto& ready : std::exchange(ready_, {})) ready();
      break;
    case HostNews::no_lock:
      host_error_ =
          fmt::format("{} cannot be locked: {}", options_.lock_file, std::strerror(report.error));
      break;
    case HostNews::taken:
      if (found == steps_.end()) break;
      found->second.state = State::taken;
      --asked_;
      break;
    case HostNews::failed:
      if (found == steps_.end()) break;
      finish(found, not_started(
                        fmt::format("no process can be started: {}", std::strerror(report.error))));
      break;
    case HostNews::gone:
      if (found == steps_.end()) break;
      if (auto end = found->second.link->take_report()) {
        finish(found, std::move(*end));
      } else {
        StepEnd alone = lost("its supervisor was killed");
        alone.code = SIGKILL;  // only that, so that its own step is the one to suspect
        finish(found, std::move(alone));
      }
      break;
  }
}

void StepRunnerCore::lose_host(const std::string& why) {
  const Steady now = std::chrono::steady_clock::now();
  if (host_ready_ && now - host_ready_at_ >= kGoodLife) host_pause_ = {};
  host_not_before_ = now + host_pause_;
  host_pause_ = std::clamp<Steady::duration>(host_pause_ * 2, kFirstPause, kLongestPause);
  if (host_ready_) {
    warn(fmt::format("{}; its steps are lost, and another one is started", why));
  } else {
    ++hosts_failed_;
    warn(fmt::format("{}; it is tried again", why));
  }
  host_.reset();
  host_ready_ = false;
  asked_ = 0;
  ++host_number_;  // no step is one of the next

  // Supervisors that live end their steps and tell. Nobody is left to tell of the others.
  std::vector<StepId> without_supervisor;
  for (const auto& [id, step] : steps_) {
    if (step.link && step.link->control_fd() < 0) without_supervisor.push_back(id);
  }
  for (const StepId id : without_supervisor) {
    finish(steps_.find(id), lost("its step host was killed"));
  }
  if (hosts_failed_ >= kHostsToFail) fail_waiting(why);
}

void StepRunnerCore::fail_waiting(const std::string& why) {
  for (const StepId id : std::exchange(waiting_, {})) {
    const auto found = steps_.find(id);
    if (found != steps_.end()) finish(found, not_started(why));
  }
}

void StepRunnerCore::ask() {
  while (host_ready_ && !waiting_.empty() && asked_ < kAskedAtOnce) {
    const auto found = steps_.find(waiting_.front());
    if (found != steps_.end() && !ask_for(found->first, found->second)) return;
    waiting_.pop_front();
  }
}

// False: not now.
bool StepRunnerCore::ask_for(StepId id, Step& step) {
  StepFds theirs;
  auto link = StepLink::make(step.spec, theirs);
  if (!link) {
    finish(steps_.find(id), not_started(link.error().detail));
    return true;
  }
  if (!host_->request(id, theirs)) return false;
  step.link = std::move(*link);
  step.link->set_input(std::move(step.spec.input));
  step.spec = {};
  step.state = State::asked;
  step.host = host_number_;
  ++asked_;
  watch(id, *step.link);
  return true;
}

// --- the end -----------------------------------------------------------------------------------

void StepRunnerCore::end_all() {
  ending_ = true;
  fail_waiting("the server is shutting down");
  for (auto& [id, step] : steps_) kill(step);
}

void StepRunnerCore::close(std::chrono::milliseconds patience) {
  bool all_ended = steps_.empty();
  if (host_) all_ended = host_->close(patience) && all_ended;
  host_.reset();
  if (!all_ended) warn("processes of steps do not end; the next start will wait for them");
  while (!steps_.empty()) finish(steps_.begin(), lost("it does not end"));
}

}  // namespace reprise::worker
