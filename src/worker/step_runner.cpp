#include "worker/step_runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/thread_name.h"
#include "base/unique_fd.h"
#include "worker/descriptor_limit.h"
#include "worker/step_process.h"
#include "worker/step_runner_core.h"

namespace reprise::worker {
namespace {

using Steady = StepRunnerCore::Steady;

constexpr std::uint64_t kWakeTag = 0;
constexpr std::size_t kEventsAtOnce = 64;
// Killed processes end at once, unless a disk or a driver does not let them.
constexpr auto kEndWithin = std::chrono::seconds(10);

class Runner final : public StepRunner {
 public:
  Runner(StepRunnerOptions options, UniqueFd epoll, UniqueFd wake)
      : options_(std::move(options)),
        descriptors_(raise_descriptor_limit()),
        epoll_(std::move(epoll)),
        wake_(std::move(wake)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Runner() override {
    post([](StepRunnerCore& core) { core.end_all(); });
    thread_.join();
  }

  void when_ready(std::function<void()> ready) override {
    post([ready = std::move(ready)](StepRunnerCore& core) mutable {
      core.when_ready(std::move(ready));
    });
  }
  StepId start(StepSpec spec, std::shared_ptr<StepObserver> observer) override {
    const StepId id = next_id_.fetch_add(1);
    post(
        [id, spec = std::move(spec), observer = std::move(observer)](StepRunnerCore& core) mutable {
          core.start(id, std::move(spec), std::move(observer));
        });
    return id;
  }
  void stop(StepId id, StopManner manner) override {
    post([id, manner](StepRunnerCore& core) { core.stop(id, manner); });
  }

 private:
  using Order = std::function<void(StepRunnerCore&)>;

  void post(Order order) {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(order));
    (void)eventfd_write(wake_.get(), 1);
  }
  void run();
  // False: nothing was in it.
  bool take_inbox(StepRunnerCore& core);

  const StepRunnerOptions options_;
  const std::uint64_t descriptors_;
  const UniqueFd epoll_;
  const UniqueFd wake_;
  std::atomic<StepId> next_id_ = 1;
  std::thread thread_;

  std::mutex mutex_;
  std::vector<Order> inbox_;  // under mutex_
};

void Runner::run() {
  name_this_thread("steps");
  // A step that does not read its input is no reason to end.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);

  StepRunnerCore core(options_, epoll_.get(), descriptors_);
  std::array<epoll_event, kEventsAtOnce> events{};
  Steady end_by = Steady::max();
  while (!core.is_ending() || (!core.is_idle() && std::chrono::steady_clock::now() < end_by)) {
    const Steady due = std::min(core.advance(), end_by);
    const int count =
        epoll_wait(epoll_.get(), events.data(), events.size(), milliseconds_until(due));
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 != kWakeTag) core.on_event(events[i].data.u64);
    }
    take_inbox(core);
    if (core.is_ending() && end_by == Steady::max()) {
      end_by = std::chrono::steady_clock::now() + kEndWithin;
    }
  }
  core.close(kEndWithin);
  while (take_inbox(core)) {
  }
}

bool Runner::take_inbox(StepRunnerCore& core) {
  eventfd_t ignored = 0;
  (void)eventfd_read(wake_.get(), &ignored);
  std::vector<Order> orders;
  {
    const std::lock_guard lock(mutex_);
    std::swap(orders, inbox_);
  }
  for (const Order& order : orders) order(core);
  return !orders.empty();
}

}  // namespace

Result<std::unique_ptr<StepRunner>> StepRunner::make(StepRunnerOptions options) {
  const auto failed = [](std::string_view what) {
    return Error{Errc::io, fmt::format("{}: {}", what, std::strerror(errno))};
  };
  // The step host opens it as well; that it cannot be had is to be known now.
  const UniqueFd lock(
      open(options.lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock) return failed(options.lock_file);
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeTag}};
  if (!epoll || !wake || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return failed("epoll");
  }
  return std::unique_ptr<StepRunner>(
      new Runner(std::move(options), std::move(epoll), std::move(wake)));
}

}  // namespace reprise::worker
