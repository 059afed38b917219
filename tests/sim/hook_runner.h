// HookRunner: those who run hooks, without Lua: answers are thrown with dice, come late, and mostly
// in order. Checks that it is asked as the engine promises: only hooks that were defined, no two
// calls with one id, and nothing is out when a definition changes.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/hook.h"
#include "sim/dice.h"

namespace reprise::sim {

class HookRunner {
 public:
  explicit HookRunner(Dice& dice);

  void submit(std::vector<HookWork> work);
  // Some of what is out; and sometimes what nobody wants any more.
  std::vector<HookResult> answer_some();
  std::vector<HookResult> answer_all();
  // The server died.
  void lose_all();

 private:
  struct Asked {
    HookCallId id{};
    bool wanted = true;
  };
  using Line = std::pair<QueueNumber, HookKind>;

  void define(const HookDefinition& definition);
  void abandon(const AbandonedHook& abandoned);
  HookOutcome outcome(HookKind kind);
  FailureVerdict failure_verdict();
  EnqueueVerdict enqueue_verdict();

  Dice& dice_;
  std::uint64_t error_percent_;  // of all answers
  std::map<Line, std::deque<Asked>> lines_;
  std::map<QueueNumber, HookDefinition> defined_;
  std::set<HookCallId> ids_;  // ever asked
};

}  // namespace reprise::sim
