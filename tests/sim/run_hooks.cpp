// Steps that deal with hooks, with the values they look up, and with throttles.
#include "sim/run.h"

namespace reprise::sim {

void Run::take_hook_work() {
  const std::vector<HookWork> work = server_.engine().take_hook_work(now_);
  listen();
  std::vector<HookCallId> ids;
  for (const HookWork& item : work) {
    if (const auto* call = std::get_if<HookCall>(&item)) ids.push_back(call->id);
    if (std::holds_alternative<AbandonedHook>(item)) count("hook called back");
  }
  compare("hook work", work, model_.take_hook_work(ids));
  if (!work.empty()) trace("  asked {}", describe(work));
  if (!ids.empty()) count("hook asked");
  runner_.submit(work);
  server_.engine().take_hook_notices();
}

void Run::answer_hooks(const std::vector<HookResult>& results) {
  if (results.empty()) return;
  trace("hooks answer {}", describe(results));
  server_.engine().finish_hook_calls(server_.as_told(results), now_);
  listen();
  model_.finish_hook_calls(results, now_);
  for (const HookResult& result : results) {
    const auto* failure = std::get_if<HookFailure>(&result.outcome);
    count(failure == nullptr ? "hook answered"
                             : "hook failed: " + std::string(hook_fault_name(failure->fault)));
  }
}

void Run::check_hook_answers() {
  Model::PushAnswers pushes = model_.take_push_answers();
  for (const auto& [id, reply] : server_.engine().take_push_answers()) {
    const auto found = pushes.find(id);
    require(found != pushes.end(), fmt::format("push {} was answered for no reason", id));
    trace("  push {} is answered", id);
    compare("push that waited", reply, found->second);
    pushed(waiting_pushes_.at(id), reply);
    waiting_pushes_.erase(id);
    pushes.erase(found);
  }
  require(pushes.empty(), "a push was not answered");
  Model::FailAnswers fails = model_.take_fail_answers();
  for (const auto& [id, results] : server_.engine().take_fail_answers()) {
    const auto found = fails.find(id);
    require(found != fails.end(), fmt::format("fail {} was answered for no reason", id));
    trace("  fail {} is answered", id);
    compare("fail that waited", results, found->second);
    failed(results);
    fails.erase(found);
  }
  require(fails.empty(), "a fail was not answered");
}

// All that is to be asked is asked and answered.
void Run::settle_hooks() {
  take_hook_work();
  answer_hooks(runner_.answer_all());
  check();
}

void Run::set_config() {
  const ConfigEntry entry = workload_.config_entry();
  trace("set config {}", describe(entry));
  compare("set config", server_.engine().set_config(entry, now_),
          Result<ConfigEntry>(model_.set_config(entry, now_)));
}

void Run::unset_config() {
  const ConfigEntry entry = workload_.config_entry();
  trace("unset config {}", describe(entry));
  const auto got = server_.engine().unset_config(entry.ns, entry.key);
  compare("unset config", got, model_.unset_config(entry.ns, entry.key));
  count(got ? "config unset" : "config unset refused");
}

void Run::set_throttle() {
  const Throttle throttle = workload_.throttle();
  trace("set throttle {}", describe(throttle));
  const auto got = server_.engine().set_throttle(throttle, now_);
  listen();
  require(got.has_value(), got ? "" : "set throttle: " + got.error().detail);
  model_.set_throttle(throttle, now_);
  const std::uint64_t changes = auditor_.throttle_changed(throttle);
  server_.reply_when_synced(
      [this, throttle, changes, at = now_] { auditor_.told_throttle(throttle, at, changes); });
  count("throttle set");
}

void Run::unset_throttle(const Throttle& throttle) {
  trace("unset throttle {}/{}", throttle.ns, throttle.key);
  const bool got = server_.engine().unset_throttle(throttle.ns, throttle.key, now_).has_value();
  listen();
  compare("unset throttle", got, model_.unset_throttle(throttle.ns, throttle.key));
  if (!got) return;
  auditor_.throttle_changed(throttle);
  count("throttle unset");
}

}  // namespace reprise::sim
