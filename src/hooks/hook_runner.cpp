#include "hooks/hook_runner.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/thread_name.h"
#include "base/unique_fd.h"
#include "hooks/runner_core.h"

namespace reprise::hooks {
namespace {

constexpr std::size_t kEventsAtOnce = 64;

// For epoll_wait(): rounded up, so that what is due is due when it returns.
int milliseconds_until(Steady when) {
  if (when == Steady::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(when - std::chrono::steady_clock::now(), Steady::duration::zero()));
  constexpr std::int64_t kLongest = 60'000;
  return static_cast<int>(std::min<std::int64_t>(left.count(), kLongest));
}

class Runner final : public HookRunner {
 public:
  explicit Runner(HookRunnerOptions options)
      : options_(std::move(options)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    REPRISE_CHECK(epoll_ && wake_);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
    thread_ = std::thread([this] { run(); });
  }
  ~Runner() override { stop(); }

  void submit(std::vector<HookWork> work) override {
    if (work.empty()) return;
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (inbox_.work.empty()) {
      inbox_.work = std::move(work);
    } else {
      std::ranges::move(work, std::back_inserter(inbox_.work));
    }
    wake();
  }

  void try_script(ScriptTrial trial, TrialDone done) override {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) {
        inbox_.trials.emplace_back(std::move(trial), std::move(done));
        return wake();
      }
    }
    done(Error{Errc::shutting_down, "the server is shutting down"});
  }

  HookRunnerMetrics metrics() const override {
    return {.hosts = counters_.hosts,
            .started = counters_.started,
            .killed = counters_.killed,
            .lost = counters_.lost};
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      wake();
    }
    const std::lock_guard lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Inbox {
    std::vector<HookWork> work;
    std::vector<std::pair<ScriptTrial, TrialDone>> trials;
  };

  void run();
  void wake() { (void)eventfd_write(wake_.get(), 1); }
  // False: it is time to stop.
  bool take_inbox(RunnerCore& core);

  const HookRunnerOptions options_;
  RunnerCounters counters_;
  const UniqueFd epoll_;
  const UniqueFd wake_;
  std::mutex join_mutex_;
  std::thread thread_;

  std::mutex mutex_;
  Inbox inbox_;            // under mutex_
  bool stopping_ = false;  // under mutex_
};

void Runner::run() {
  name_this_thread("hooks");
  RunnerCore core(options_, counters_, epoll_.get());
  std::array<epoll_event, kEventsAtOnce> events{};
  Steady next = Steady::max();
  bool running = true;
  while (running) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds_until(next));
    for (int i = 0; i < count; ++i) core.on_event(events[i].data.u64, events[i].events);
    core.flush_results();  // before it is known that nobody wants some of them
    running = take_inbox(core);
    if (!running) break;
    core.advance();
    next = core.tick();
    core.flush_results();
  }
  core.shut_down();
}

bool Runner::take_inbox(RunnerCore& core) {
  eventfd_t ignored = 0;
  (void)eventfd_read(wake_.get(), &ignored);
  Inbox inbox;
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    std::swap(inbox, inbox_);
    stopping = stopping_;
  }
  core.take_work(std::move(inbox.work));
  for (auto& [trial, done] : inbox.trials) core.take_trial(std::move(trial), std::move(done));
  return !stopping;
}

}  // namespace

std::unique_ptr<HookRunner> HookRunner::start(HookRunnerOptions options) {
  return std::make_unique<Runner>(std::move(options));
}

}  // namespace reprise::hooks
