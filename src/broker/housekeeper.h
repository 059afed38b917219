// Housekeeper: the work that goes on by itself, on a thread of its own: operations, step by step
// and at their pace, and letting go of ended jobs that their queues keep no longer. It finds jobs
// in committed storage and asks the engine to deal with them; the engine judges each again, and
// stores an operation's progress in the same batch as its effect. So a crash between two steps
// repeats nothing and loses nothing. Threads: begin() and ended() from any thread. Callbacks of
// waiting callers run on this one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "broker/broker.h"
#include "engine/engine.h"
#include "storage/storage.h"

namespace reprise {

class Housekeeper {
 public:
  // How to ask the engine. Each answers once what it did is durable, or with an error.
  struct Requests {
    std::function<void(Engine::OperationStep, Done<Operation>)> step_operation;
    std::function<void(Done<std::vector<Engine::Keeping>>)> keepings;
    std::function<void(std::vector<Engine::EndedRef>, Done<std::uint64_t>)> let_go;
  };
  Housekeeper(const storage::Storage& storage, const Clock& clock, Requests requests);
  ~Housekeeper();  // stop()

  // Runs it to its end. `done` is called when it has ended, or after `wait` as it is then; null:
  // nobody waits.
  void begin(const Operation& operation, Duration wait, Done<Operation> done);
  // It has ended otherwise: by a cancel.
  void ended(const Operation& operation);
  // The queue is gone, and with it its operations.
  void queue_deleted(QueueNumber queue);
  // Who waits is answered at once, from now on.
  void stop_waiting();
  void stop();

  std::size_t running() const;

 private:
  struct Running {
    Operation operation;
    // What the pace is counted from; a restart does not make up for the time it took.
    Timestamp paced_since;
    std::uint64_t done_before = 0;
    Timestamp next_at;     // not before then
    bool is_over = false;  // only its last word is wanted
  };
  struct Waiter {
    OperationId id{};
    Timestamp deadline;
    Done<Operation> done;
  };

  void run();
  Timestamp next_wake() const;
  void run_due_operation(std::unique_lock<std::mutex>& lock);
  void step(Running running);
  Engine::OperationStep find_step(const Operation& operation, std::size_t most) const;
  std::size_t allowance(const Running& running, Timestamp now) const;
  void sweep();
  bool sweep_queue(const Engine::Keeping& keeping);
  void answer_waiters(std::unique_lock<std::mutex>& lock);
  template <class T, class Send>
  Result<T> ask(const Send& send);

  const storage::Storage& storage_;
  const Clock& clock_;
  const Requests requests_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Protected by mutex_.
  std::map<OperationId, Running> running_;
  std::vector<Waiter> waiters_;
  Timestamp next_sweep_;
  bool nobody_waits_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace reprise
