// What a hook has decided, as people read it: for a sample of `hook test`, or for the jobs of
// `hook replay` by what would have become of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_view.h"
#include "cli/table.h"

namespace reprise::cli {

struct HookDecision {
  std::string what;    // retry, dlq, accept, reject, hook_error
  std::string detail;  // "after 1s", a reason, attributes, an error

  bool failed() const { return what == "hook_error"; }
  Cell what_cell() const;
};
// `result` is an element of the API's `results` or `decisions`.
HookDecision hook_decision(JsonView result);

struct DecisionGroup {
  HookDecision decision;
  std::uint64_t jobs = 0;
  std::string example;  // a job's id
};
// All retries are one group, with the shortest and the longest wait; the others are told apart by
// their detail, those with the most jobs first.
std::vector<DecisionGroup> grouped_decisions(const std::vector<JsonView>& decisions);

}  // namespace reprise::cli
