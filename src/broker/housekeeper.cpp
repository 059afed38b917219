#include "broker/housekeeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/thread_name.h"
#include "broker/endings.h"
#include "broker/selection.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

// Few enough that a step does not hold up the commands behind it, many enough for one commit.
constexpr std::size_t kJobsPerStep = 500;
// A paced operation does a little now and then rather than one job at each tick.
constexpr Duration kPaceStep = 50ms;
constexpr Duration kRetryAfterTrouble = 200ms;
constexpr Duration kSweepInterval = 1s;

Engine::EndedRef ref_of(const Ended& ended, PurgeCause cause) {
  const bool is_dead = ended.key.kind == storage::EndKind::dead;
  return {.job = {ended.key.queue, ended.key.seq},
          .status = is_dead ? JobStatus::dead : JobStatus::completed,
          .ended_at = ended.key.at,
          .cause = cause};
}

}  // namespace

Housekeeper::Housekeeper(const storage::Storage& storage, const Clock& clock, Requests requests)
    : storage_(storage),
      clock_(clock),
      requests_(std::move(requests)),
      next_sweep_(clock.now() + kSweepInterval),
      thread_([this] { run(); }) {}

Housekeeper::~Housekeeper() { stop(); }

void Housekeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Who still waits hears how far it has come; it goes on after the next start.
  std::unique_lock lock(mutex_);
  for (Waiter& waiter : waiters_) waiter.deadline = {};
  answer_waiters(lock);
}

void Housekeeper::stop_waiting() {
  {
    const std::lock_guard lock(mutex_);
    nobody_waits_ = true;
    for (Waiter& waiter : waiters_) waiter.deadline = {};
  }
  wake_.notify_all();
}

void Housekeeper::begin(const Operation& operation, Duration wait, Done<Operation> done) {
  const Timestamp now = clock_.now();
  {
    std::unique_lock lock(mutex_);
    if (stopping_) {
      lock.unlock();
      if (done) done(operation);
      return;
    }
    running_.emplace(operation.id, Running{.operation = operation,
                                           .paced_since = now,
                                           .done_before = operation.done + operation.skipped,
                                           .next_at = now});
    const Timestamp deadline = nobody_waits_ ? now : add_saturating(now, wait);
    if (done) waiters_.push_back({operation.id, deadline, std::move(done)});
  }
  wake_.notify_all();
}

void Housekeeper::ended(const Operation& operation) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(operation.id);
    if (found != running_.end()) found->second.operation = operation;
  }
  wake_.notify_all();
}

void Housekeeper::queue_deleted(QueueNumber queue) {
  {
    const std::lock_guard lock(mutex_);
    for (auto& [id, running] : running_) {
      if (running.operation.queue != queue) continue;
      running.is_over = true;
      running.next_at = {};
    }
  }
  wake_.notify_all();
}

std::size_t Housekeeper::running() const {
  const std::lock_guard lock(mutex_);
  // One that has ended stays listed until its waiters are answered.
  return static_cast<std::size_t>(std::ranges::count_if(running_, [](const auto& entry) {
    return !entry.second.is_over && entry.second.operation.state == OperationState::running;
  }));
}

void Housekeeper::run() {
  name_this_thread("housekeeper");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Duration pause = next_wake() - clock_.now();
    if (pause > Duration::zero()) wake_.wait_for(lock, std::min<Duration>(pause, kSweepInterval));
    if (stopping_) return;
    run_due_operation(lock);
    answer_waiters(lock);
    if (stopping_ || clock_.now() < next_sweep_) continue;
    lock.unlock();
    sweep();
    lock.lock();
    next_sweep_ = clock_.now() + kSweepInterval;
  }
}

Timestamp Housekeeper::next_wake() const {
  Timestamp next = next_sweep_;
  for (const auto& [id, running] : running_) next = std::min(next, running.next_at);
  for (const Waiter& waiter : waiters_) next = std::min(next, waiter.deadline);
  return next;
}

// The one that has waited longest for its turn.
void Housekeeper::run_due_operation(std::unique_lock<std::mutex>& lock) {
  const auto due = std::ranges::min_element(running_, {},
                                            [](const auto& entry) { return entry.second.next_at; });
  if (due == running_.end() || due->second.next_at > clock_.now()) return;
  if (due->second.operation.state != OperationState::running) return;
  Running running = due->second;
  lock.unlock();
  step(std::move(running));
  lock.lock();
}

void Housekeeper::step(Running running) {
  const OperationId id = running.operation.id;
  const auto wait_until = [&](Timestamp at) {
    const std::lock_guard lock(mutex_);
    if (const auto found = running_.find(id); found != running_.end()) found->second.next_at = at;
  };
  const Timestamp now = clock_.now();
  const std::size_t most = running.is_over ? 0 : allowance(running, now);
  if (most == 0 && !running.is_over) {
    return wait_until(now + std::max(kPaceStep, running.operation.rate->interval()));
  }
  const Engine::OperationStep step =
      running.is_over ? Engine::OperationStep{.id = id} : find_step(running.operation, most);
  const auto stepped = ask<Operation>(
      [&](Done<Operation> done) { requests_.step_operation(step, std::move(done)); });
  // Too busy, or stopping: the same step again, later.
  if (!stepped && stepped.error().code != Errc::operation_not_found) {
    return wait_until(clock_.now() + kRetryAfterTrouble);
  }
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  if (!stepped) {
    running_.erase(found);
    return;
  }
  found->second.operation = *stepped;
  found->second.next_at = clock_.now();
}

Engine::OperationStep Housekeeper::find_step(const Operation& operation, std::size_t most) const {
  const auto page = select_page(storage_, operation, most);
  if (!page) return {.id = operation.id, .failed = page.error().detail};
  return {
      .id = operation.id, .jobs = page->jobs, .cursor = page->cursor, .finished = page->finished};
}

std::size_t Housekeeper::allowance(const Running& running, Timestamp now) const {
  std::uint64_t most = std::min<std::uint64_t>(kJobsPerStep, running.operation.left());
  if (running.operation.rate) {
    const std::uint64_t done =
        running.operation.done + running.operation.skipped - running.done_before;
    const std::uint64_t allowed = running.operation.rate->allowed_in(now - running.paced_since);
    most = std::min(most, allowed > done ? allowed - done : 0);
  }
  return most;
}

void Housekeeper::answer_waiters(std::unique_lock<std::mutex>& lock) {
  const Timestamp now = clock_.now();
  std::vector<std::pair<Done<Operation>, Operation>> answers;
  std::erase_if(waiters_, [&](Waiter& waiter) {
    const auto found = running_.find(waiter.id);
    if (found == running_.end()) return true;
    const Operation& operation = found->second.operation;
    if (operation.state == OperationState::running && waiter.deadline > now) return false;
    answers.emplace_back(std::move(waiter.done), operation);
    return true;
  });
  std::erase_if(running_, [](const auto& entry) {
    return entry.second.operation.state != OperationState::running;
  });
  if (answers.empty()) return;
  lock.unlock();
  for (auto& [done, operation] : answers) done(std::move(operation));
  lock.lock();
}

void Housekeeper::sweep() {
  const auto keepings = ask<std::vector<Engine::Keeping>>(
      [&](Done<std::vector<Engine::Keeping>> done) { requests_.keepings(std::move(done)); });
  if (!keepings) return;
  for (const Engine::Keeping& keeping : *keepings) {
    if (!sweep_queue(keeping)) return;
  }
}

// One step for each queue and sweep, so that none of them waits for another's millions; there is
// another sweep soon. False: no more now.
bool Housekeeper::sweep_queue(const Engine::Keeping& keeping) {
  const auto snapshot = storage_.snapshot();
  const Endings dead(*snapshot, keeping.queue, storage::EndKind::dead);
  const Endings completed(*snapshot, keeping.queue, storage::EndKind::completed);
  std::vector<Engine::EndedRef> over;
  const auto take = [&](const Endings& endings, const storage::EndingKey& to, std::size_t most,
                        PurgeCause cause) {
    const auto found = endings.oldest(endings.from(Timestamp{}), to, most);
    if (!found) return;
    for (const Ended& ended : *found) over.push_back(ref_of(ended, cause));
  };
  constexpr std::size_t kSweptAtOnce = 20 * kJobsPerStep;
  if (keeping.dead_before) {
    take(dead, dead.from(*keeping.dead_before), kSweptAtOnce, PurgeCause::keep_dead);
  }
  // The longest dead are the same ones: what their age ends is not too many any more.
  if (keeping.dead_beyond_max > over.size()) {
    const std::size_t aged = over.size();
    std::vector<Engine::EndedRef> by_age = std::exchange(over, {});
    take(dead, dead.end(), std::min<std::uint64_t>(keeping.dead_beyond_max, kSweptAtOnce),
         PurgeCause::max_dead);
    std::copy_n(by_age.begin(), std::min(aged, over.size()), over.begin());
  }
  if (keeping.completed_before) {
    take(completed, completed.from(*keeping.completed_before), kSweptAtOnce, PurgeCause::purge);
  }
  for (std::size_t begin = 0; begin < over.size(); begin += kJobsPerStep) {
    const auto end = std::min(begin + kJobsPerStep, over.size());
    const auto gone = ask<std::uint64_t>([&](Done<std::uint64_t> done) {
      requests_.let_go({over.begin() + static_cast<std::ptrdiff_t>(begin),
                        over.begin() + static_cast<std::ptrdiff_t>(end)},
                       std::move(done));
    });
    if (!gone) return false;
  }
  return true;
}

// Waits for the answer, but not for longer than this thread is wanted.
template <class T, class Send>
Result<T> Housekeeper::ask(const Send& send) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable come;
    std::optional<Result<T>> result;
  };
  const auto answer = std::make_shared<Answer>();
  send([answer](Result<T> result) {
    const std::lock_guard lock(answer->mutex);
    answer->result = std::move(result);
    answer->come.notify_all();
  });
  std::unique_lock lock(answer->mutex);
  while (!answer->come.wait_for(lock, 20ms, [&] { return answer->result.has_value(); })) {
    const std::lock_guard own(mutex_);
    if (stopping_) return Error{Errc::shutting_down, "the server is stopping"};
  }
  return std::move(*answer->result);
}

}  // namespace reprise
