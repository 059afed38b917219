#include "cli/hook_decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/time.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

Duration delay_of(JsonView result) {
  // The server takes no delay beyond a year; more would not be its answer.
  const double milliseconds = std::clamp(result["delay_ms"].number().value_or(0), 0.0, 1e12);
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::milli>(milliseconds));
}

std::string after(Duration delay) {
  return delay == Duration::zero() ? "at once" : "after " + humanize_duration(delay);
}

std::string error_text(JsonView result) {
  const std::string fault = text_of(result["fault"]);
  const std::string message = text_of(result["message"]);
  if (message.empty()) return fault;
  return fault == "error" ? message : fmt::format("{}: {}", fault, message);
}

std::string attributes_text(JsonView result) {
  std::string keys;
  for (const auto& key : result["throttle_keys"].elements()) {
    keys += (keys.empty() ? "" : ",") + text_of(key);
  }
  return fmt::format("fairness_key={} weight={} throttle_keys={}", text_of(result["fairness_key"]),
                     text_of(result["weight"]), keys.empty() ? "-" : keys);
}

// The waits of all retries together.
class RetryGroup {
 public:
  void add(JsonView result) {
    const auto delay = delay_of(result);
    shortest_ = std::min(shortest_.value_or(delay), delay);
    longest_ = std::max(longest_, delay);
    if (group_.jobs++ == 0) group_.example = text_of(result["id"]);
  }
  std::optional<DecisionGroup> group() const {
    if (!shortest_) return std::nullopt;
    DecisionGroup group = group_;
    const bool alike = *shortest_ == longest_;
    group.decision = {
        .what = "retry",
        .detail = alike ? after(longest_)
                        : fmt::format("{} to {}", after(*shortest_), humanize_duration(longest_))};
    return group;
  }

 private:
  DecisionGroup group_;
  std::optional<Duration> shortest_;
  Duration longest_{};
};

}  // namespace

Cell HookDecision::what_cell() const {
  if (failed() || what == "reject") return Cell(what, Style::red);
  if (what == "dlq") return Cell(what, Style::yellow);
  return Cell(what, Style::green);
}

HookDecision hook_decision(JsonView result) {
  if (text_of(result["status"]) == "hook_error") {
    return {.what = "hook_error", .detail = error_text(result)};
  }
  if (const auto reject = result["reject"]; !reject.is_null()) {
    return {.what = "reject", .detail = text_of(reject)};
  }
  const auto action = result["action"];
  if (action.is_null()) return {.what = "accept", .detail = attributes_text(result)};
  const std::string what = text_of(action);
  return {.what = what,
          .detail = what == "retry" ? after(delay_of(result)) : text_of(result["reason"])};
}

std::vector<DecisionGroup> grouped_decisions(const std::vector<JsonView>& decisions) {
  RetryGroup retries;
  std::map<std::pair<std::string, std::string>, DecisionGroup> others;
  for (const auto& result : decisions) {
    auto decision = hook_decision(result);
    if (decision.what == "retry") {
      retries.add(result);
      continue;
    }
    auto& group = others[{decision.what, decision.detail}];
    if (group.jobs++ == 0) group.example = text_of(result["id"]);
    group.decision = std::move(decision);
  }
  std::vector<DecisionGroup> groups;
  if (auto group = retries.group()) groups.push_back(*std::move(group));
  const auto first_other = static_cast<std::ptrdiff_t>(groups.size());
  for (auto& [key, group] : others) groups.push_back(std::move(group));
  std::stable_sort(groups.begin() + first_other, groups.end(),
                   [](const DecisionGroup& a, const DecisionGroup& b) { return a.jobs > b.jobs; });
  return groups;
}

}  // namespace reprise::cli
