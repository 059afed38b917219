// FakeStepRunner: records what is started and lets the test say how it ends.
// A step that is stopped ends at once, as by the signal, unless `obeys` is false.
// Threads: any.
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/step_runner.h"

namespace reprise::test {

class FakeStepRunner final : public worker::StepRunner {
 public:
  using StepEnd = worker::StepEnd;
  using StepId = worker::StepId;
  struct Stop {
    StepId id{};
    worker::StopManner manner{};
  };

  bool obeys = true;

  void when_ready(std::function<void()> ready) override { ready(); }
  StepId start(worker::StepSpec spec, std::shared_ptr<worker::StepObserver> observer) override {
    const std::lock_guard lock(mutex_);
    const StepId id = ++last_;
    specs_.emplace(id, std::move(spec));
    observers_.emplace(id, std::move(observer));
    return id;
  }
  void stop(StepId id, worker::StopManner manner) override {
    {
      const std::lock_guard lock(mutex_);
      stops_.push_back({id, manner});
    }
    if (!obeys) return;
    const int signal = manner == worker::StopManner::gently ? SIGTERM : SIGKILL;
    end(id, {.kind = StepEnd::Kind::signalled, .code = signal, .detail = {}});
  }

  // Steps that run and whose scripts begin so, of one job or of any; in the order of their starts.
  std::vector<StepId> running(std::string_view script = "", std::string_view job = "") const {
    const std::lock_guard lock(mutex_);
    std::vector<StepId> found;
    for (const auto& [id, observer] : observers_) {
      const worker::StepSpec& spec = specs_.at(id);
      if (!spec.script.starts_with(script)) continue;
      if (!job.empty() && value_in(spec, "REPRISE_JOB_ID") != job) continue;
      found.push_back(id);
    }
    return found;
  }
  // How many of them were ever started.
  std::size_t started(std::string_view script = "") const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& [id, spec] : specs_) count += spec.script.starts_with(script) ? 1 : 0;
    return count;
  }
  worker::StepSpec spec(StepId id) const {
    const std::lock_guard lock(mutex_);
    return specs_.at(id);
  }
  // A variable of its environment; nothing: it has none of that name.
  std::optional<std::string> variable(StepId id, std::string_view name) const {
    return value_in(spec(id), name);
  }
  std::vector<Stop> stops() const {
    const std::lock_guard lock(mutex_);
    return stops_;
  }

  void say(StepId id, std::string_view text, worker::StepStream stream = worker::StepStream::out) {
    observer(id)->on_output(stream, text);
  }
  // False: it had ended already.
  bool end(StepId id, const StepEnd& how) {
    std::shared_ptr<worker::StepObserver> observer;
    {
      const std::lock_guard lock(mutex_);
      const auto found = observers_.find(id);
      if (found == observers_.end()) return false;
      observer = std::move(found->second);
      observers_.erase(found);
    }
    observer->on_end(how);
    return true;
  }
  bool exit(StepId id, int code = 0, std::string_view out = "", std::string_view err = "") {
    if (!out.empty()) say(id, out);
    if (!err.empty()) say(id, err, worker::StepStream::err);
    return end(id, {.kind = StepEnd::Kind::exited, .code = code, .detail = {}});
  }

 private:
  static std::optional<std::string> value_in(const worker::StepSpec& spec, std::string_view name) {
    for (const std::string& variable : spec.environment) {
      if (variable.starts_with(std::string(name) + "=")) return variable.substr(name.size() + 1);
    }
    return std::nullopt;
  }
  std::shared_ptr<worker::StepObserver> observer(StepId id) const {
    const std::lock_guard lock(mutex_);
    return observers_.at(id);
  }

  mutable std::mutex mutex_;
  StepId last_ = 0;
  std::map<StepId, worker::StepSpec> specs_;  // of all that were ever started
  std::map<StepId, std::shared_ptr<worker::StepObserver>> observers_;  // of those that run
  std::vector<Stop> stops_;
};

}  // namespace reprise::test
