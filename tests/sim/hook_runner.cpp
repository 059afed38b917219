#include "sim/hook_runner.h"

#include <algorithm>

#include "sim/violation.h"

namespace reprise::sim {

using namespace std::chrono_literals;

HookRunner::HookRunner(Dice& dice)
    : dice_(dice), error_percent_(dice.pick<std::uint64_t>({0, 20, 60, 90})) {}

void HookRunner::submit(std::vector<HookWork> work) {
  for (HookWork& item : work) {
    if (const auto* definition = std::get_if<HookDefinition>(&item)) define(*definition);
    if (const auto* abandoned = std::get_if<AbandonedHook>(&item)) abandon(*abandoned);
    if (const auto* call = std::get_if<HookCall>(&item)) {
      const auto found = defined_.find(call->queue);
      require(found != defined_.end() &&
                  !found->second.sources[static_cast<std::size_t>(call->hook)].empty(),
              "a hook is asked that nobody has defined");
      require(call->id != 0 && ids_.insert(call->id).second, "two calls have the same id");
      lines_[{call->queue, call->hook}].push_back({call->id});
    }
  }
}

void HookRunner::define(const HookDefinition& definition) {
  for (const auto& [line, asked] : lines_) {
    require(line.first != definition.queue || std::ranges::none_of(asked, &Asked::wanted),
            "a definition changes under calls that are out");
  }
  const bool any = std::ranges::any_of(definition.sources,
                                       [](const std::string& source) { return !source.empty(); });
  defined_.erase(definition.queue);
  if (any) defined_.emplace(definition.queue, definition);
}

// Some answers are on their way already.
void HookRunner::abandon(const AbandonedHook& abandoned) {
  std::deque<Asked>& line = lines_[{abandoned.queue, abandoned.hook}];
  for (Asked& asked : line) asked.wanted = false;
  std::erase_if(line, [&](const Asked&) { return dice_.percent(70); });
}

std::vector<HookResult> HookRunner::answer_some() {
  if (dice_.percent(5)) error_percent_ = dice_.pick<std::uint64_t>({0, 20, 60, 90});
  std::vector<HookResult> results;
  for (auto& [line, asked] : lines_) {
    std::uint64_t count = dice_.below(4);
    for (; count > 0 && !asked.empty(); --count) {
      const std::size_t place = dice_.percent(85) ? 0 : dice_.below(asked.size());
      const auto which = asked.begin() + static_cast<std::ptrdiff_t>(place);
      results.push_back({which->id, outcome(line.second)});
      asked.erase(which);
    }
  }
  return results;
}

std::vector<HookResult> HookRunner::answer_all() {
  std::vector<HookResult> results;
  for (auto& [line, asked] : lines_) {
    for (const Asked& call : asked) results.push_back({call.id, outcome(line.second)});
    asked.clear();
  }
  return results;
}

void HookRunner::lose_all() {
  lines_.clear();
  defined_.clear();
  ids_.clear();
}

HookOutcome HookRunner::outcome(HookKind kind) {
  if (dice_.percent(error_percent_)) {
    const auto fault = static_cast<HookFault>(dice_.below(kHookFaultCount - 1));
    return HookFailure{fault, "line " + std::to_string(1 + dice_.below(9))};
  }
  if (kind == HookKind::on_failure) return failure_verdict();
  return enqueue_verdict();
}

FailureVerdict HookRunner::failure_verdict() {
  if (dice_.percent(70)) return {.delay = dice_.pick<Duration>({0s, 0s, 1us, 100ms, 1s, 10s})};
  const bool in_words = dice_.percent(60);
  return {.retry = false, .reason = in_words ? dice_.pick<std::string>({"no card", "late"}) : ""};
}

EnqueueVerdict HookRunner::enqueue_verdict() {
  EnqueueVerdict verdict;
  if (dice_.percent(15)) verdict.reject = "no id";
  if (dice_.percent(40)) verdict.fairness_key = dice_.pick<std::string>({"default", "acme"});
  if (dice_.percent(40)) verdict.weight = static_cast<std::uint32_t>(1 + dice_.below(5));
  if (dice_.percent(40)) {
    auto& keys = verdict.throttle_keys.emplace();
    for (std::uint64_t n = dice_.below(3); n > 0; --n) {
      keys.push_back("t" + std::to_string(dice_.below(3)));
    }
  }
  return verdict;
}

}  // namespace reprise::sim
