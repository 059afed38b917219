// Hooks: what the engine wants of them goes to the runner, their answers come back through the
// inbox; scripts are checked before they are stored; and they can be tried without any effect.
#include <algorithm>
#include <future>
#include <utility>

#include "broker/job_reader.h"
#include "broker/selection.h"
#include "broker/threaded_broker_impl.h"

namespace reprise {
namespace {

// A replay reads and asks so much at a time.
constexpr std::size_t kReplayedAtOnce = 500;
constexpr std::uint64_t kReplayedBytesAtOnce = 8ULL << 20;

// A job as on_failure was told of it, or would have been, at its last failure.
HookMessage last_failure_of(const JobView& job) {
  HookMessage message{.job = job.record, .id = encode_job_id(job.seq)};
  if (job.state == nullptr) return message;
  message.attempts = job.state->attempts;
  message.failures = job.state->failures;
  message.error = job.state->last_error;
  message.error_type = job.state->last_error_type;
  message.first_attempt_at = job.state->first_attempt_at;
  return message;
}

// The jobs of a page with their messages, asked in one go.
struct ReplayBatch {
  std::vector<JobView> jobs;
  std::uint64_t bytes = 0;

  bool is_full() const { return jobs.size() >= kReplayedAtOnce || bytes >= kReplayedBytesAtOnce; }
};

}  // namespace

std::unique_ptr<hooks::HookRunner> ThreadedBroker::start_hooks() {
  hooks::HookRunnerOptions options;
  options.program = options_.hook_program;
  options.max_hosts = options_.max_hook_hosts;
  options.on_results = [this](std::vector<HookResult> results) {
    admit_own([this, results = std::move(results)](Timestamp now) {
      core_->engine().finish_hook_calls(results, now);
    });
  };
  options.on_log = options_.on_hook_log;
  options.on_notice = options_.on_hook_notice;
  return hooks::HookRunner::start(std::move(options));
}

void ThreadedBroker::take_hook_work(Timestamp now) {
  Engine& engine = core_->engine();
  if (auto work = engine.take_hook_work(now); !work.empty()) hooks_->submit(std::move(work));
  for (const Engine::HookNotice& notice : engine.take_hook_notices()) {
    if (options_.on_hook_trouble) {
      options_.on_hook_trouble(notice.queue, notice.hook, notice.text);
    }
  }
}

// --- Scripts are checked before they are stored -------------------------------------------------

void ThreadedBroker::check_hooks(QueueName queue, QueueConfig config, HookKind from, Checked then) {
  for (auto kind = static_cast<std::size_t>(from); kind < kHookKindCount; ++kind) {
    if (config.hooks[kind].empty()) continue;
    hooks::ScriptTrial trial{.queue = queue,
                             .hook = static_cast<HookKind>(kind),
                             .source = config.hooks[kind],
                             .limits = hook_limits(config, options_.limits),
                             .messages = {}};
    const auto next = static_cast<HookKind>(kind + 1);
    auto rest = std::make_shared<Checked>(std::move(then));
    hooks_->try_script(std::move(trial),
                       [this, queue = std::move(queue), config = std::move(config), next,
                        rest](const auto& tried) {
                         if (!tried) return (*rest)(tried.error());
                         check_hooks(queue, config, next, std::move(*rest));
                       });
    return;
  }
  then(ok());
}

void ThreadedBroker::put_queue(PutQueueCommand command, Done<PutQueueReply> done) {
  const QueueName queue = command.queue;
  const QueueConfig config = command.config;
  check_hooks(queue, config, HookKind::on_enqueue,
              [this, command = std::move(command), done = std::move(done)](Status checked) mutable {
                if (!checked) return done(checked.error());
                post<PutQueueReply>(std::move(done), 0,
                                    [this, command = std::move(command)](Timestamp now) {
                                      return core_->engine().put_queue(command, now);
                                    });
              });
}

// The edit is tried first on the engine's thread, which has the config that it edits. Only scripts
// that it changes are checked.
void ThreadedBroker::edit_queue(QueueName name, ConfigEdit edit, Done<QueueStats> done) {
  auto shared_done = std::make_shared<Done<QueueStats>>(std::move(done));
  Task task = [this, name = std::move(name), edit = std::move(edit), shared_done](Timestamp now) {
    Engine& engine = core_->engine();
    const auto number = engine.find_queue(name);
    QueueConfig edited;
    QueueConfig to_check;
    if (number) {
      const QueueConfig& current = engine.queue_record(*number)->config;
      edited = to_check = current;
      if (edit(edited)) {
        to_check = edited;
        for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
          if (edited.hooks[kind] == current.hooks[kind]) to_check.hooks[kind].clear();
        }
      } else {
        to_check.hooks = {};  // refused below
      }
    }
    if (to_check.hooks == QueueConfig{}.hooks) {
      return reply_with_batch<QueueStats>(std::move(*shared_done),
                                          engine.edit_queue(name, edit, now));
    }
    check_hooks(name, std::move(to_check), HookKind::on_enqueue,
                [this, name, edit, shared_done](Status checked) {
                  if (!checked) return (*shared_done)(checked.error());
                  post<QueueStats>(std::move(*shared_done), 0, [this, name, edit](Timestamp at) {
                    return core_->engine().edit_queue(name, edit, at);
                  });
                });
  };
  if (const Status admitted = admit({std::move(task)}); !admitted) {
    (*shared_done)(admitted.error());
  }
}

// --- Runtime values -----------------------------------------------------------------------------

void ThreadedBroker::set_config(ConfigEntry entry, Done<ConfigEntry> done) {
  post<ConfigEntry>(std::move(done), 0, [this, entry = std::move(entry)](Timestamp now) {
    return core_->engine().set_config(entry, now);
  });
}

void ThreadedBroker::unset_config(std::string ns, std::string key, Done<ConfigEntry> done) {
  post<ConfigEntry>(std::move(done), 0,
                    [this, ns = std::move(ns), key = std::move(key)](Timestamp) {
                      return core_->engine().unset_config(ns, key);
                    });
}

void ThreadedBroker::show_config(std::string ns, std::string key, Done<ConfigEntry> done) {
  post<ConfigEntry>(std::move(done), 0,
                    [this, ns = std::move(ns), key = std::move(key)](Timestamp) {
                      return core_->engine().config(ns, key);
                    });
}

void ThreadedBroker::list_config(std::string ns, Done<std::vector<ConfigEntry>> done) {
  using List = std::vector<ConfigEntry>;
  post<List>(std::move(done), 0, [this, ns = std::move(ns)](Timestamp) {
    return Result<List>(core_->engine().list_config(ns));
  });
}

// --- Throttles ----------------------------------------------------------------------------------

void ThreadedBroker::set_throttle(Throttle throttle, Done<ThrottleStats> done) {
  post<ThrottleStats>(std::move(done), 0, [this, throttle = std::move(throttle)](Timestamp now) {
    return core_->engine().set_throttle(throttle, now);
  });
}

void ThreadedBroker::unset_throttle(std::string ns, std::string key, Done<ThrottleStats> done) {
  post<ThrottleStats>(std::move(done), 0,
                      [this, ns = std::move(ns), key = std::move(key)](Timestamp now) {
                        return core_->engine().unset_throttle(ns, key, now);
                      });
}

void ThreadedBroker::show_throttle(std::string ns, std::string key, Done<ThrottleStats> done) {
  post<ThrottleStats>(std::move(done), 0,
                      [this, ns = std::move(ns), key = std::move(key)](Timestamp now) {
                        return core_->engine().throttle(ns, key, now);
                      });
}

void ThreadedBroker::list_throttles(std::string ns, Done<std::vector<ThrottleStats>> done) {
  using List = std::vector<ThrottleStats>;
  post<List>(std::move(done), 0, [this, ns = std::move(ns)](Timestamp now) {
    return Result<List>(core_->engine().list_throttles(ns, now));
  });
}

// --- Trials -------------------------------------------------------------------------------------

Result<ThreadedBroker::TrialStart> ThreadedBroker::start_trial(
    const QueueName& queue, HookKind hook, const std::optional<std::string>& given) {
  const auto number = core_->engine().find_queue(queue);
  if (!number) return number.error();
  TrialStart start{.queue = *core_->engine().queue_record(*number), .source = {}};
  start.source = given ? *given : start.queue.config.hook(hook);
  if (start.source.empty()) {
    return Error{Errc::invalid_request, "queue '" + queue.name + "' has no " +
                                            std::string(hook_name(hook)) +
                                            "; give a script to try"};
  }
  return start;
}

void ThreadedBroker::try_hook(HookTrialRequest request, Done<HookTrialReply> done) {
  auto shared_done = std::make_shared<Done<HookTrialReply>>(std::move(done));
  Done<TrialStart> started = [this, shared_done, hook = request.hook,
                              messages = std::move(request.messages)](auto start) mutable {
    if (!start) return (*shared_done)(start.error());
    hooks::ScriptTrial trial{.queue = start->queue.name,
                             .hook = hook,
                             .source = start->source,
                             .limits = hook_limits(start->queue.config, options_.limits),
                             .messages = std::move(messages)};
    hooks_->try_script(std::move(trial), [shared_done, version = hook_version(start->source)](
                                             Result<std::vector<hooks::TrialResult>> tried) {
      if (!tried) return (*shared_done)(tried.error());
      HookTrialReply reply{.version = version, .items = {}};
      for (hooks::TrialResult& item : *tried) {
        reply.items.push_back({std::move(item.outcome), std::move(item.log)});
      }
      (*shared_done)(std::move(reply));
    });
  };
  post<TrialStart>(
      std::move(started), 0,
      [this, queue = std::move(request.queue), hook = request.hook,
       source = std::move(request.source)](Timestamp) { return start_trial(queue, hook, source); });
}

void ThreadedBroker::replay_hook(HookReplayRequest request, Done<HookReplayReply> done) {
  auto shared = std::make_shared<const HookReplayRequest>(std::move(request));
  Done<TrialStart> started = [this, shared, done = std::move(done)](auto start) mutable {
    if (!start) return done(start.error());
    read_on<HookReplayReply>(scanner_, std::move(done),
                             [this, shared, start = *std::move(start)](
                                 Done<HookReplayReply> reply) { reply(replay(*shared, start)); });
  };
  post<TrialStart>(std::move(started), 0, [this, shared](Timestamp) {
    return start_trial(shared->queue, HookKind::on_failure, shared->source);
  });
}

Result<HookReplayReply> ThreadedBroker::replay(const HookReplayRequest& request,
                                               const TrialStart& start) {
  HookReplayReply reply{.version = hook_version(start.source), .items = {}};
  const auto ask = [&](ReplayBatch batch) -> Status {
    hooks::ScriptTrial trial{.queue = start.queue.name,
                             .hook = HookKind::on_failure,
                             .source = start.source,
                             .limits = hook_limits(start.queue.config, options_.limits),
                             .messages = {}};
    for (const JobView& job : batch.jobs) trial.messages.push_back(last_failure_of(job));
    std::promise<Result<std::vector<hooks::TrialResult>>> promise;
    hooks_->try_script(std::move(trial), [&](auto tried) { promise.set_value(std::move(tried)); });
    auto tried = promise.get_future().get();
    if (!tried) return tried.error();
    for (std::size_t i = 0; i < batch.jobs.size(); ++i) {
      reply.items.push_back({std::move(batch.jobs[i]), std::move(tried->at(i).outcome)});
    }
    return ok();
  };
  Operation looking{.kind = OperationKind::retry,
                    .queue = start.queue.number,
                    .name = start.queue.name,
                    .filter = request.filter,
                    .limit = {},
                    .started_at = now()};
  const JobReader reader(storage_, start.queue.number);
  // Also when nothing fits the filter: a script that cannot be used is told as such.
  ReplayBatch batch;
  bool asked = false;
  for (bool finished = false; !finished && !reply.truncated;) {
    const auto page = select_page(storage_, looking, kReplayedAtOnce);
    if (!page) return page.error();
    for (const Seq seq : page->jobs) {
      if (reply.items.size() + batch.jobs.size() == request.limit) {
        reply.truncated = true;
        break;
      }
      auto job = reader.show(seq, looking.started_at);
      if (!job || job->record == nullptr) {
        ++reply.unreadable;
        continue;
      }
      batch.bytes += job->record->byte_size();
      batch.jobs.push_back(*std::move(job));
      if (batch.is_full()) {
        REPRISE_TRY(ask(std::exchange(batch, {})));
        asked = true;
      }
    }
    looking.cursor = page->cursor;
    finished = page->finished;
  }
  if (!batch.jobs.empty() || !asked) REPRISE_TRY(ask(std::move(batch)));
  return reply;
}

}  // namespace reprise
