// Worker: one worker of a project, whatever its queue: started and stopped, resized, declared anew
// when the runbook changes. Its two kinds get their work in different ways.
//
//   stopped ──start──▶ running ──stop──▶ stopping ──(nothing runs any more)──▶ stopped
//                         ▲                restart: restarting ──(the same)──▶ running
//
// Threads: the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "broker/broker.h"
#include "runbook/runbook.h"
#include "worker/items_in_hand.h"
#include "worker/poll_plan.h"
#include "worker/run.h"
#include "worker/worker_service.h"

namespace reprise::worker {

using Book = std::shared_ptr<const runbook::Runbook>;

// What is known of an external queue as a whole.
struct ExternalQueueState {
  std::optional<Timestamp> last_poll_at;
  std::uint64_t listed = 0;
  std::string last_error;
};

struct WorkerCounts {
  std::uint64_t runs_succeeded = 0;
  std::uint64_t runs_failed = 0;
  std::uint64_t runs_cancelled = 0;
  std::uint64_t runs_lost = 0;
  std::uint64_t polls_succeeded = 0;
  std::uint64_t polls_failed = 0;
};

// What workers have of the service that they belong to. It outlives them.
class WorkerHost {
 public:
  virtual ~WorkerHost() = default;
  virtual RunTools tools() = 0;
  virtual Broker& broker() = 0;
  virtual ItemsInHand& items() = 0;
  virtual ExternalQueueState& external_state(const QueueName& queue) = 0;
  virtual WorkerCounts& counts() = 0;
  // Reads the runbook again if it has changed and puts it in force, then goes on. The worker may
  // have been declared anew, or retired, by then.
  virtual void refresh_project(const std::string& ns, Task then) = 0;
  // A declared queue is not there: make it again.
  virtual void redeclare_queue(const std::string& ns, const std::string& queue) = 0;
  virtual void run_begins(std::shared_ptr<Run> run) = 0;
  // Closes its record. Until then it counts as running: its result may still be refused.
  virtual void run_ends(const std::string& id, const RunEnd& end) = 0;
  // A stop waits for what the broker still has to answer.
  virtual void call_begins() = 0;
  virtual void call_ends() = 0;
  // Its status or concurrency has changed, or it has become idle.
  virtual void worker_changed(const std::string& ns, const std::string& worker) = 0;
  virtual void publish(EventType type, const QueueName& queue, WorkerNews news,
                       std::string error) = 0;
  virtual void warn(std::string_view text) = 0;
};

class Worker : public std::enable_shared_from_this<Worker> {
 public:
  Worker(WorkerHost& host, Book book, const runbook::WorkerDeclaration& declaration,
         std::shared_ptr<WorkerLog> log);
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Wakes one that runs.
  void start();
  // `now`: what runs ends at once and is given back.
  void stop(bool now);
  void restart(bool now);
  void resize(std::uint32_t concurrency);
  // A new version of the runbook. The queue and its kind are the same.
  void declare(Book book, const runbook::WorkerDeclaration& declaration);
  // The server stops: everything ends at once, and nothing is told.
  void shut_down();

  WorkerView view() const;
  WorkerStatus status() const { return status_; }
  const std::string& name() const { return name_; }
  const QueueName& queue() const { return queue_; }
  std::uint32_t concurrency() const { return concurrency_; }
  std::uint32_t declared_concurrency() const { return declared_; }
  bool idle() const { return status_ == WorkerStatus::stopped && active() == 0; }
  WorkerLog& log() { return *log_; }
  const std::shared_ptr<WorkerLog>& shared_log() const { return log_; }

  virtual void wake() = 0;

 protected:
  virtual std::uint32_t active() const = 0;
  virtual void begin_work() = 0;
  // Asks for nothing more.
  virtual void end_asking() = 0;
  // Ends what runs, and gives it back.
  virtual void give_back(const std::string& why) = 0;
  virtual void fill_view(WorkerView&) const {}
  virtual void redeclared() = 0;

  bool runs() const { return status_ == WorkerStatus::running; }
  bool shutting_down() const { return shutting_down_; }
  std::uint32_t free_slots() const;
  // Something has ended: perhaps it was the last.
  void settle();
  // What a run needs besides its job.
  RunOrder order_for(const std::string& job, bool external) const;
  Result<std::shared_ptr<Run>> begin_run(RunOrder order, Run::Ended ended);
  void run_has_ended(const std::string& run, const std::string& job, const RunEnd& end);
  void say(std::string_view text);
  void failed_with(std::string error);
  void went_well() { last_error_.clear(); }

  WorkerHost& host_;
  Book book_;
  const std::string name_;
  const QueueName queue_;
  std::shared_ptr<WorkerLog> log_;

 private:
  void set_status(WorkerStatus status);

  runbook::WorkerDeclaration declaration_;
  WorkerStatus status_ = WorkerStatus::stopped;
  std::uint32_t declared_;
  std::uint32_t concurrency_;
  bool shutting_down_ = false;
  std::uint64_t succeeded_ = 0;
  std::uint64_t failed_ = 0;
  std::string last_error_;
  std::optional<Timestamp> last_error_at_;
};

// Claims jobs like any client: a slot is a lease.
std::shared_ptr<Worker> make_queue_worker(WorkerHost& host, Book book,
                                          const runbook::WorkerDeclaration& declaration,
                                          std::shared_ptr<WorkerLog> log);
// Lists an external queue and takes items from it.
std::shared_ptr<Worker> make_external_worker(WorkerHost& host, Book book,
                                             const runbook::WorkerDeclaration& declaration,
                                             std::shared_ptr<WorkerLog> log);

}  // namespace reprise::worker
