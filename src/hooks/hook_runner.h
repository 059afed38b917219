// HookRunner: asks the hooks of queues, each queue's in a process of its own.
//
// A nursery process (`reprise hook-host`, the same binary) is started at the first need and forks a
// host for each queue that calls hooks; the host locks itself in (hooks/host/sandbox.h) before it
// sees a script. Calls go out in batches and come back in order. A call that is not answered
// within its budget ends with its host: SIGKILL, a new host, and the calls of the batch that were
// not at fault are asked again. So one queue's scripts delay nobody but that queue.
//
// Work is done in the order in which it was submitted: a call sees the definition and the config
// that were submitted before it.
//
// Threads: submit(), try_script() and metrics() from any thread; they never wait for a host. One
// thread of its own does all the work and calls back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/hook.h"

namespace reprise::hooks {

struct HookRunnerOptions {
  // What to start, with the argument "hook-host"; empty: this very program.
  std::string program;
  // Hosts at once, 1 at least; those of trials, of which there are few, come on top. One that has
  // had nothing to do for longest makes room for another; when all are busy, queues take turns.
  std::uint32_t max_hosts = 64;
  // A host that has had nothing to do for so long ends.
  Duration end_idle_after = std::chrono::minutes(5);
  // Of a trial, whatever it asks.
  Duration trial_time = std::chrono::seconds(30);
  // On the runner's thread; short.
  std::function<void(std::vector<HookResult>)> on_results;
  // What scripts log, bounded per queue, and what is worth knowing about hosts.
  std::function<void(const QueueName&, HookKind, std::string_view text)> on_log;
  std::function<void(std::string_view text)> on_notice;
};

// A script of no queue, in a host of its own that ends with it.
struct ScriptTrial {
  QueueName queue;  // whose name and config it sees
  HookKind hook{};
  std::string source;
  HookLimits limits;
  std::vector<HookMessage> messages;  // none: only whether the script can be used
};
struct TrialResult {
  HookOutcome outcome;
  std::vector<std::string> log;
};
// Errc::invalid_script: it cannot be used, with the line; Errc::hooks_unavailable: no host can be
// started; Errc::overloaded: too many wait already. On the runner's thread, short; when it was
// stopped before, on the caller's.
using TrialDone = std::function<void(Result<std::vector<TrialResult>>)>;

struct HookRunnerMetrics {
  std::uint64_t hosts = 0;    // running now
  std::uint64_t started = 0;  // since the start of the server
  std::uint64_t killed = 0;   // because something took too long
  std::uint64_t lost = 0;     // ended by themselves
};

class HookRunner {
 public:
  static std::unique_ptr<HookRunner> start(HookRunnerOptions options);
  virtual ~HookRunner() = default;  // stops first

  virtual void submit(std::vector<HookWork> work) = 0;
  virtual void try_script(ScriptTrial trial, TrialDone done) = 0;
  virtual HookRunnerMetrics metrics() const = 0;
  // Ends all hosts; not from a callback. Calls that are out are not answered any more; trials are,
  // with Errc::shutting_down.
  virtual void stop() = 0;
};

}  // namespace reprise::hooks
