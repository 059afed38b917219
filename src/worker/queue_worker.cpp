// A worker of a stored queue. One claim waits at the broker whenever there is a free slot, so that
// a push wakes it at once. Each lease has a run; the slot is free again when the broker has taken
// the result.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "worker/worker.h"

namespace reprise::worker {
namespace {

// Asked for again when it is over, so that a claim never waits for a worker that is gone.
constexpr Duration kClaimWait = std::chrono::minutes(5);
// After trouble, twice as long each time.
constexpr Duration kFirstRetryWait = std::chrono::seconds(1);
constexpr Duration kLongestRetryWait = std::chrono::seconds(30);
// A lease that was lost is noticed no later than this.
constexpr Duration kLongestExtension = std::chrono::seconds(5);
constexpr Duration kResultWait = std::chrono::milliseconds(200);
constexpr Duration kShortestExtension = std::chrono::milliseconds(30);

// What a step finds on standard input.
std::string input_of(const QueueName& queue, const ClaimedJob& job) {
  JsonWriter out;
  out.begin_object();
  out.key("id").value(encode_job_id(job.token.job.seq));
  out.key("namespace").value(queue.ns);
  out.key("queue").value(queue.name);
  out.key("attempts").value(job.attempts);
  out.key("failures").value(job.failures);
  out.key("pushed_at").value(format_timestamp(job.record->pushed_at));
  out.key("headers").begin_object();
  for (const auto& [name, value] : job.record->headers) out.key(name).value(value);
  out.end_object();
  if (job.record->payload_kind == PayloadKind::json) {
    out.key("payload").raw(job.record->payload);
  } else {
    out.key("payload_base64").value(base64_encode(job.record->payload));
  }
  out.end_object();
  return out.take();
}

// Whether to ask once more: the broker could not take it now.
bool may_pass(Errc code) {
  return code == Errc::overloaded || code == Errc::hooks_unavailable ||
         code == Errc::too_many_waiting;
}

class QueueWorker final : public Worker {
 public:
  using Worker::Worker;

  void wake() override {
    host_.refresh_project(book_->ns, [self = self()] { self->ask(); });
  }

 private:
  struct Slot {
    LeaseToken token;
    std::string job;
    Duration lease{};
    std::shared_ptr<Run> run;
  };

  std::shared_ptr<QueueWorker> self() {
    return std::static_pointer_cast<QueueWorker>(shared_from_this());
  }
  std::uint32_t active() const override { return static_cast<std::uint32_t>(slots_.size()); }
  void begin_work() override {
    waits_ = false;
    retry_wait_.reset();
    wake();
  }

  void end_asking() override {
    host_.tools().loop.cancel_timer(ask_timer());
    waits_ = false;
    if (claim_) host_.broker().cancel_claim(*claim_);
  }

  void redeclared() override {
    // A claim that waits was for as many as were free then.
    if (claim_ && free_slots() != asked_for_) host_.broker().cancel_claim(*claim_);
    ask();
  }

  void give_back(const std::string& why) override {
    std::vector<std::shared_ptr<Run>> runs;
    for (const auto& [id, slot] : slots_) runs.push_back(slot.run);
    for (const auto& run : runs) run->abandon(why);
  }

  std::string ask_timer() const { return fmt::format("ask:{}/{}", queue_.ns, name_); }
  static std::string extend_timer(const std::string& run) { return "extend:" + run; }

  void ask() {
    if (!runs() || shutting_down() || claim_ || beginning_ || waits_ || free_slots() == 0) return;
    host_.call_begins();
    asked_for_ = free_slots();
    const auto max = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(asked_for_, host_.broker().limits().max_claim_jobs));
    Loop& loop = host_.tools().loop;
    claim_ = host_.broker().claim({.queue = queue_,
                                   .max = max,
                                   .wait = kClaimWait,
                                   .lease = {},
                                   .lane = LaneChoice::any,
                                   .worker = name_,
                                   .own = true},
                                  [&loop, self = self()](Result<ClaimReply> reply) {
                                    loop.post([self, reply = std::move(reply)]() mutable {
                                      self->claimed(std::move(reply));
                                    });
                                  });
  }

  void claimed(Result<ClaimReply> reply) {
    claim_.reset();
    if (reply) {
      if (std::exchange(claim_failed_, false)) went_well();
      take_jobs(std::move(reply->jobs));
    } else {
      not_claimed(reply.error());
    }
    host_.call_ends();
  }

  void take_jobs(std::vector<ClaimedJob> jobs) {
    beginning_ = true;  // what ends at once must not ask for more before the rest has its slots
    for (ClaimedJob& job : jobs) {
      // Since it asked, it may have been stopped or made smaller.
      if (!runs() || shutting_down() || waits_ || free_slots() == 0) {
        put_back(job.token, {}, true);
      } else {
        begin_job(std::move(job));
      }
    }
    beginning_ = false;
    ask();
  }

  void not_claimed(const Error& error) {
    if (error.code == Errc::shutting_down || !runs()) return;
    if (error.code == Errc::queue_not_found) host_.redeclare_queue(queue_.ns, queue_.name);
    claim_failed_ = true;
    wait_after(fmt::format("cannot claim: {}", error.detail));
  }

  // Something is wrong here rather than with a job: asks again later.
  void wait_after(std::string trouble) {
    failed_with(std::move(trouble));
    if (waits_ || !runs()) return;
    waits_ = true;
    retry_wait_ = retry_wait_ ? std::min(*retry_wait_ * 2, kLongestRetryWait) : kFirstRetryWait;
    host_.tools().loop.after(ask_timer(), *retry_wait_, [self = self()] {
      self->waits_ = false;
      self->wake();
    });
  }

  void begin_job(ClaimedJob job) {
    const std::string id = encode_job_id(job.token.job.seq);
    // Its lease was lost, unnoticed so far: never twice at the same time.
    for (const auto& [run, slot] : slots_) {
      if (slot.job != id) continue;
      const auto before = slot.run;
      put_back(job.token, kFirstRetryWait, true);
      return before->abandon("the lease was lost");
    }
    RunOrder order = order_for(id, false);
    if (job.record->payload_kind == PayloadKind::json) order.item = job.record->payload;
    order.input = input_of(queue_, job);
    order.attempts = job.attempts;
    order.failures = job.failures;
    order.headers = job.record->headers;
    auto run_id = std::make_shared<std::string>();
    auto run = begin_run(std::move(order), [self = self(), run_id](const RunEnd& end) {
      self->job_ended(*run_id, end);
    });
    if (!run) {
      put_back(job.token, kFirstRetryWait, true);
      return wait_after(fmt::format("no run can be begun: {}", run.error().detail));
    }
    *run_id = (*run)->id();
    Loop& loop = host_.tools().loop;
    const Duration lease = std::max(job.lease_deadline - loop.now(), kShortestExtension);
    slots_.emplace(*run_id, Slot{job.token, id, lease, *run});
    extend_later(*run_id);
    say(fmt::format("run {} for job {}, attempt {}", *run_id, id, job.attempts));
    (*run)->begin();
  }

  // --- The lease is kept for as long as the run takes -------------------------------------------

  void extend_later(const std::string& run, std::optional<Duration> wait = {}) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    host_.tools().loop.after(extend_timer(run),
                             wait.value_or(std::min(slot->second.lease / 3, kLongestExtension)),
                             [self = self(), run] { self->extend(run); });
  }

  void extend(const std::string& run) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    Loop& loop = host_.tools().loop;
    host_.broker().extend({{.token = slot->second.token, .lease = {}}},
                          [&loop, self = self(), run](Result<ItemResults<Extended>> reply) {
                            loop.post([self, run, reply = std::move(reply)] {
                              self->extended(run, reply ? reply->front() : reply.error());
                            });
                          });
  }

  void extended(const std::string& run, const Result<Extended>& result) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    if (result) {
      slot->second.lease =
          std::max(result->lease_deadline - host_.tools().loop.now(), kShortestExtension);
      return extend_later(run);
    }
    if (may_pass(result.error().code)) return extend_later(run, slot->second.lease / 10);
    if (result.error().code == Errc::shutting_down) return;
    const auto lost = slot->second.run;
    lost->abandon(fmt::format("the lease was lost: {}", result.error().detail));
  }

  // --- Results -----------------------------------------------------------------------------------

  void job_ended(const std::string& run, const RunEnd& end) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    if (end.status == RunStatus::succeeded) retry_wait_.reset();
    if (end.status == RunStatus::lost && end.error_type == "start") wait_after(end.error);
    if (end.status != RunStatus::failed) return report(run, end);
    // The policy that counts is the one of now.
    host_.refresh_project(book_->ns, [self = self(), run, end] { self->report(run, end); });
  }

  void report(const std::string& run, const RunEnd& end) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    Loop& loop = host_.tools().loop;
    const LeaseToken token = slot->second.token;
    auto taken = [self = self(), run, end](const Status& result) {
      self->reported(run, end, result);
    };
    const auto then = [&loop, taken]<class T>(Result<ItemResults<T>> reply) {
      Status result = ok();
      if (!reply) {
        result = reply.error();
      } else if (!reply->front()) {
        result = reply->front().error();
      }
      loop.post([taken, result = std::move(result)] { taken(result); });
    };
    switch (end.status) {
      case RunStatus::succeeded:
        return host_.broker().ack({{.token = token}}, then);
      case RunStatus::failed:
      case RunStatus::cancelled:
        return host_.broker().fail({{.token = token,
                                     .error = end.error,
                                     .error_type = end.error_type,
                                     .final = end.status == RunStatus::cancelled}},
                                   then);
      case RunStatus::lost:
      case RunStatus::running:
        return release(
            {.token = token, .delay = end.error_type == "start" ? kFirstRetryWait : Duration{}},
            taken);
    }
  }

  // A job that was not begun.
  void put_back(const LeaseToken& token, Duration delay, bool undelivered) {
    host_.call_begins();
    release({.token = token, .delay = delay, .undelivered = undelivered},
            [self = self()](const Status&) { self->host_.call_ends(); });
  }

  void release(ReleaseItem item, absl::AnyInvocable<void(const Status&)> taken) {
    Loop& loop = host_.tools().loop;
    host_.broker().release({std::move(item)}, [&loop, taken = std::move(taken)](
                                                  Result<ItemResults<Released>> reply) mutable {
      Status result = ok();
      if (!reply) {
        result = reply.error();
      } else if (!reply->front()) {
        result = reply->front().error();
      }
      loop.post(
          [taken = std::move(taken), result = std::move(result)]() mutable { taken(result); });
    });
  }

  void reported(const std::string& run, const RunEnd& end, const Status& result) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    if (!result && may_pass(result.error().code)) {
      host_.tools().loop.after("report:" + run, kResultWait,
                               [self = self(), run, end] { self->report(run, end); });
      return;
    }
    RunEnd told = end;
    if (!result && result.error().code == Errc::lease_lost) {
      told = {RunStatus::lost, fmt::format("the lease was lost: {}", result.error().detail),
              "lost"};
    } else if (!result && end.status != RunStatus::lost) {
      failed_with(fmt::format("job {} ({}): its result was not taken: {}", slot->second.job,
                              run_status_name(end.status), result.error().detail));
    }
    run_has_ended(run, slot->second.job, told);
    host_.tools().loop.cancel_timer(extend_timer(run));
    slots_.erase(slot);
    host_.run_ends(run, told);
    settle();
    ask();
    if (shutting_down() && slots_.empty()) host_.worker_changed(queue_.ns, name_);
  }

  std::map<std::string, Slot> slots_;  // by run
  std::optional<ClaimId> claim_;       // that waits
  std::uint32_t asked_for_ = 0;
  bool beginning_ = false;     // jobs of a claim are being begun
  bool waits_ = false;         // after trouble
  bool claim_failed_ = false;  // the last one
  std::optional<Duration> retry_wait_;
};

}  // namespace

std::shared_ptr<Worker> make_queue_worker(WorkerHost& host, Book book,
                                          const runbook::WorkerDeclaration& declaration,
                                          std::shared_ptr<WorkerLog> log) {
  return std::make_shared<QueueWorker>(host, std::move(book), declaration, std::move(log));
}

}  // namespace reprise::worker
