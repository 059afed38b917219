// Scripts on trial: each is a line of its own that ends with its last answer.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/duration.h"
#include "hooks/runner_core.h"

namespace reprise::hooks {
namespace {

constexpr std::size_t kTrialsAtOnce = 4;
// One place is kept for scripts that are only loaded: whoever sets a hook waits for that.
constexpr std::size_t kTrialsWithMessages = 3;
constexpr std::size_t kTrialsWaiting = 100;
constexpr auto kPatienceAtTheEnd = std::chrono::milliseconds(500);

}  // namespace

void RunnerCore::take_trial(ScriptTrial trial, TrialDone done) {
  if (waiting_trials_.size() >= kTrialsWaiting) {
    return done(Error{Errc::overloaded, "too many scripts wait to be tried; try again later"});
  }
  waiting_trials_.push_back({std::move(trial), std::move(done)});
  start_trials();
}

void RunnerCore::start_trials() {
  while (running_trials_ < kTrialsAtOnce) {
    const bool all_may = running_trials_ < kTrialsWithMessages;
    const auto next = std::ranges::find_if(waiting_trials_, [&](const WaitingTrial& waiting) {
      return all_may || waiting.trial.messages.empty();
    });
    if (next == waiting_trials_.end()) return;
    ScriptTrial trial = std::move(next->trial);
    TrialDone done = std::move(next->done);
    waiting_trials_.erase(next);
    ++running_trials_;

    auto line = std::make_unique<Line>(next_trial_line_++);
    std::array<std::string, kHookKindCount> sources;
    sources[static_cast<std::size_t>(trial.hook)] = std::move(trial.source);
    line->scripts = make_scripts(std::move(trial.queue), std::move(sources), trial.limits);
    const bool with_payload = line->scripts->read_payloads[static_cast<std::size_t>(trial.hook)];
    line->trial = std::make_unique<Trial>();
    line->trial->hook = trial.hook;
    line->trial->done = std::move(done);
    line->trial->deadline = std::chrono::steady_clock::now() + options_.trial_time;
    line->trial->results.resize(trial.messages.size());
    line->trial->unanswered = trial.messages.size();
    for (std::size_t i = 0; i < trial.messages.size(); ++i) {
      REPRISE_CHECK(trial.messages[i].job != nullptr);
      line->calls.add({.id = i,
                       .hook = trial.hook,
                       .message = std::move(trial.messages[i]),
                       .scripts = line->scripts,
                       .with_payload = with_payload});
    }
    touch(*line);
    lines_.emplace(line->id, std::move(line));
  }
}

bool RunnerCore::finish_if_answered(Line& line) {
  if (!line.trial || !line.trial->usable || line.trial->unanswered > 0) return false;
  finish_trial(line, std::move(line.trial->results));
  return true;
}

void RunnerCore::finish_trial(Line& line, Result<std::vector<TrialResult>> result) {
  if (Host* host = find_host(line.host); host != nullptr) kill(*host, End::not_needed);
  const TrialDone done = std::move(line.trial->done);
  lines_.erase(line.id);
  --running_trials_;
  done(std::move(result));
}

void RunnerCore::finish_late_trials(Steady now) {
  std::vector<Line*> late;
  for (auto& [number, host] : hosts_) {
    Line* line = host->line < kFirstTrialLine ? nullptr : find_line(host->line);
    if (line != nullptr && line->trial && now >= line->trial->deadline) late.push_back(line);
  }
  for (Line* line : late) {
    finish_trial(*line, Error{Errc::invalid_request,
                              fmt::format("{} took longer than {} for all that it was asked; try "
                                          "it with fewer jobs",
                                          hook_name(line->trial->hook),
                                          format_duration(options_.trial_time))});
  }
}

void RunnerCore::shut_down() {
  const Error stopped{Errc::shutting_down, "the server is shutting down"};
  for (WaitingTrial& waiting : std::exchange(waiting_trials_, {})) waiting.done(stopped);
  std::vector<Line*> trials;
  for (auto& [id, line] : lines_) {
    if (line->trial) trials.push_back(line.get());
  }
  for (Line* line : trials) finish_trial(*line, stopped);
  for (auto& [number, host] : hosts_) kill(*host, End::not_needed);
  // It ends when it has reaped them.
  keeper_.close(kPatienceAtTheEnd);
  hosts_.clear();
  counters_.hosts = 0;
}

}  // namespace reprise::hooks
