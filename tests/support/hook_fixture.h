// HookFixture: an EngineFixture whose test is the one that answers the hooks.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/hook.h"
#include "support/engine_fixture.h"

namespace reprise {

inline void PrintTo(BreakerState state, std::ostream* out) { *out << breaker_state_name(state); }

namespace test {

inline HookOutcome retry_after(Duration delay) { return FailureVerdict{.delay = delay}; }
inline HookOutcome give_up(std::string reason = "") {
  return FailureVerdict{.retry = false, .reason = std::move(reason)};
}
inline HookOutcome accept_as_pushed() { return EnqueueVerdict{}; }
inline HookOutcome reject(std::string why) { return EnqueueVerdict{.reject = std::move(why)}; }
inline HookOutcome broken(HookFault fault = HookFault::error, std::string message = "line 1: no") {
  return HookFailure{fault, std::move(message)};
}

class HookFixture : public EngineFixture {
 protected:
  static QueueConfig with_hook(HookKind kind, QueueConfig config = {}, std::string source = "one") {
    config.hooks[static_cast<std::size_t>(kind)] = std::move(source);
    return config;
  }
  void set_hook(HookKind kind, QueueConfig config = {}, std::string source = "one") {
    configure(with_hook(kind, std::move(config), std::move(source)));
    work();
  }
  HookStats hook_stats(HookKind kind) {
    const auto seen = stats().hooks[static_cast<std::size_t>(kind)];
    EXPECT_TRUE(seen) << "there is no " << hook_name(kind);
    return seen.value_or(HookStats{});
  }

  // --- What is to be asked.
  std::vector<HookWork> work() { return engine_->take_hook_work(now()); }
  std::vector<HookCall> calls() {
    std::vector<HookCall> calls;
    for (HookWork& item : work()) {
      if (auto* call = std::get_if<HookCall>(&item)) calls.push_back(std::move(*call));
    }
    return calls;
  }
  HookCall only_call() {
    auto all = calls();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? HookCall{} : all.front();
  }
  // The engine's so-many-th call is about this hook of the queue.
  HookCallId call_id(HookKind hook, std::uint64_t number_of_call) const {
    return hook_call_id(number(), hook, number_of_call);
  }
  // The same in words: "call on_failure 1", "abandoned on_failure", "definition one|".
  Names work_in_words() {
    Names words;
    for (const HookWork& item : work()) {
      if (const auto* call = std::get_if<HookCall>(&item)) {
        const HookCallId first = call_id(call->hook, 1);
        words.push_back("call " + std::string(hook_name(call->hook)) + " " +
                        std::to_string(call->id - first + 1));
      } else if (const auto* abandoned = std::get_if<AbandonedHook>(&item)) {
        words.push_back("abandoned " + std::string(hook_name(abandoned->hook)));
      } else if (const auto* definition = std::get_if<HookDefinition>(&item)) {
        words.push_back("definition " + definition->sources[0] + "|" + definition->sources[1]);
      } else if (const auto* change = std::get_if<ConfigChange>(&item)) {
        words.push_back("config " + change->ns + "/" + change->key + " " +
                        change->value.value_or("(gone)"));
      }
    }
    return words;
  }
  void answer(const HookCall& call, HookOutcome outcome, bool repeatable = false) {
    const HookResult result{call.id, std::move(outcome), repeatable};
    engine_->finish_hook_calls({&result, 1}, now());
  }
  // All that is asked now.
  void answer_all(const HookOutcome& outcome) {
    std::vector<HookResult> results;
    for (const HookCall& call : calls()) results.push_back({call.id, outcome});
    engine_->finish_hook_calls(results, now());
  }
  Names notices() {
    Names texts;
    for (const Engine::HookNotice& notice : engine_->take_hook_notices()) {
      EXPECT_EQ(notice.queue, queue_);
      texts.push_back(std::string(hook_name(notice.hook)) + " " + notice.text);
    }
    return texts;
  }

  // --- Failures that a hook decides.
  RequestId start_fail(const std::vector<ClaimedJob>& jobs, const FailItem& item = {}) {
    std::vector<FailItem> items(jobs.size(), item);
    for (std::size_t i = 0; i < jobs.size(); ++i) items[i].token = jobs[i].token;
    const RequestId id = next_request_++;
    EXPECT_FALSE(engine_->fail(id, items, now())) << "answered without the hook";
    return id;
  }
  RequestId start_fail(const ClaimedJob& job, const FailItem& item = {}) {
    return start_fail(std::vector{job}, item);
  }
  // What failures have become since the last call.
  std::map<RequestId, ItemResults<Failed>> fail_answers() {
    std::map<RequestId, ItemResults<Failed>> answers;
    for (Engine::FailAnswer& answer : engine_->take_fail_answers()) {
      EXPECT_TRUE(answers.emplace(answer.id, std::move(answer.results)).second) << "twice";
    }
    return answers;
  }
  Result<Failed> fail_answer(RequestId id) {
    auto answers = fail_answers();
    EXPECT_EQ(answers.size(), 1U);
    return answers.contains(id) ? answers[id].at(0)
                                : Result<Failed>(Error{Errc::internal, "no answer"});
  }
  // Asks about this failure and takes the answer.
  Result<Failed> fail_with(const ClaimedJob& job, const HookOutcome& outcome,
                           const FailItem& item = {}) {
    const RequestId id = start_fail(job, item);
    answer(only_call(), outcome);
    return fail_answer(id);
  }

  // --- Pushes that a hook decides.
  RequestId start_push(const Names& payloads, NewJob job = {}) {
    PushCommand command{.queue = queue_};
    for (const std::string& payload : payloads) {
      job.payload = payload;
      command.jobs.push_back(job);
    }
    const RequestId id = next_request_++;
    EXPECT_FALSE(engine_->push(id, std::move(command), now())) << "answered without the hook";
    return id;
  }
  std::map<RequestId, Result<PushReply>> push_answers() {
    std::map<RequestId, Result<PushReply>> answers;
    for (Engine::PushAnswer& answer : engine_->take_push_answers()) {
      EXPECT_TRUE(answers.emplace(answer.id, std::move(answer.reply)).second) << "twice";
    }
    return answers;
  }
  ItemResults<PushedJob> push_answer(RequestId id) {
    const auto answers = push_answers();
    const auto found = answers.find(id);
    const bool there = found != answers.end() && found->second;
    EXPECT_TRUE(there) << "no answer";
    return there ? found->second->results : ItemResults<PushedJob>{};
  }
  Scheduling scheduling_of(Seq seq) const {
    const auto found = ledger_.jobs.find(key_of(seq));
    return found == ledger_.jobs.end() ? Scheduling{} : found->second->scheduling;
  }
};

}  // namespace test
}  // namespace reprise
