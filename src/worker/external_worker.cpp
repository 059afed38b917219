// A worker of an external queue: lists it, takes what nobody has in hand, and runs the pipeline for
// each item.
#include <fmt/format.h>

#include <deque>
#include <map>
#include <utility>

#include "model/timer_id.h"
#include "worker/command.h"
#include "worker/step_environment.h"
#include "worker/worker.h"

namespace reprise::worker {
namespace {

class ExternalWorker final : public Worker {
 public:
  using Worker::Worker;

  void wake() override { poll(PollReason::asked); }

 private:
  struct Slot {
    ItemRecord record;
    std::shared_ptr<Run> run;
  };

  std::shared_ptr<ExternalWorker> self() {
    return std::static_pointer_cast<ExternalWorker>(shared_from_this());
  }
  Loop& loop() { return host_.tools().loop; }
  const runbook::ExternalQueue& declared() const {
    return *book_->queues.find(queue_.name)->second.external();
  }
  ExternalQueueState& state() { return host_.external_state(queue_); }
  std::string poll_timer() const {
    return TimerId{.kind = TimerId::Kind::queue_poll, .ns = queue_.ns, .name = name_}.to_text();
  }

  std::uint32_t active() const override {
    return static_cast<std::uint32_t>(slots_.size()) + (taking_ ? 1 : 0) + telling_;
  }
  void begin_work() override {
    giving_back_.reset();
    arm(plan_.wait(declared().poll));
    wake();
  }
  void end_asking() override {
    loop().cancel_timer(poll_timer());
    plan_.stop();
    candidates_.clear();
    if (plan_.running() && !taking_ && stop_command_) stop_command_();
  }
  void give_back(const std::string& why) override {
    giving_back_ = why;
    if (stop_command_) stop_command_();
    std::vector<std::shared_ptr<Run>> runs;
    for (const auto& [id, slot] : slots_) runs.push_back(slot.run);
    for (const auto& run : runs) run->abandon(why);
  }
  void redeclared() override {
    if (!runs()) return;
    if (const auto poll = declared().poll; poll != armed_for_) arm(plan_.wait(poll));
    this->poll(PollReason::freed);
  }

  // --- When ------------------------------------------------------------------------------------

  void arm(std::optional<Duration> wait) {
    armed_for_ = declared().poll;
    if (!wait) return loop().cancel_timer(poll_timer());
    loop().after(poll_timer(), *wait, [self = self()] {
      // Armed again first: whatever comes of this poll, there is a next one.
      self->arm(self->plan_.wait(self->declared().poll));
      self->poll(PollReason::due);
    });
  }

  void poll(PollReason reason) {
    if (!runs() || shutting_down()) return;
    if (plan_.request(reason)) begin_poll();
  }

  void begin_poll() {
    host_.refresh_project(queue_.ns, [self = self()] { self->list(); });
  }

  void poll_is_over() {
    candidates_.clear();
    if (list_) host_.items().list_ends(queue_, *std::exchange(list_, std::nullopt));
    const bool again = plan_.finished();
    settle();
    if (!again) return;
    if (runs() && !shutting_down()) return begin_poll();
    (void)plan_.finished();
  }

  // --- List ------------------------------------------------------------------------------------

  CommandSubject subject() const {
    return {.ns = queue_.ns,
            .root = book_->root,
            .server_url = host_.tools().server_url ? host_.tools().server_url() : "",
            .worker = name_,
            .queue = queue_.name};
  }

  void list() {
    if (!runs() || shutting_down()) return poll_is_over();
    auto spec = make_spec(declared().list, subject(), host_.tools().environment);
    if (!spec) return listed(spec.error());
    list_ = host_.items().list_begins(queue_);
    stop_command_ = run_command(
        loop(), host_.tools().steps,
        {.name = "list:" + poll_timer(), .spec = *std::move(spec), .timeout = declared().timeout},
        [self = self()](Result<std::string> output) {
          if (!output) return self->listed(output.error());
          self->listed(parse_items(*output, self->declared().key));
        });
  }

  void listed(Result<std::vector<ExternalItem>> items) {
    state().last_poll_at = loop().now();
    last_poll_at_ = loop().now();
    WorkerCounts& counts = host_.counts();
    ++(items ? counts.polls_succeeded : counts.polls_failed);
    if (!runs() || shutting_down()) return poll_is_over();
    const auto wait = plan_.listed(items.has_value(), declared().poll);
    // Room alone does not put off the list that looks at everything again.
    if (!items || list_failed_ || plan_.reason() != PollReason::freed) arm(wait);
    if (!items) {
      state().last_error = fmt::format("list: {}", items.error().detail);
      failed_with(state().last_error);
      list_failed_ = true;
      return poll_is_over();
    }
    state().listed = items->size();
    state().last_error.clear();
    if (std::exchange(list_failed_, false)) went_well();
    candidates_.assign(std::make_move_iterator(items->begin()),
                       std::make_move_iterator(items->end()));
    take_next();
  }

  // --- Take ------------------------------------------------------------------------------------

  void take_next() {
    while (!candidates_.empty() && runs() && !shutting_down() && free_slots() > 0) {
      ItemRecord record{.ns = queue_.ns,
                        .queue = queue_.name,
                        .worker = name_,
                        .item = std::move(candidates_.front()),
                        .phase = ItemPhase::taking,
                        .run = {},
                        .error = {}};
      candidates_.pop_front();
      const std::string& key = record.item.key;
      if (plan_.is_left_alone(key) || !host_.items().is_free(queue_, key, *list_)) continue;
      taking_ = true;
      host_.items().take(record, [self = self(), record](const Status& stored) {
        if (stored) return self->take(record);
        self->taking_ = false;
        if (stored.error().code == Errc::value_too_large) {
          self->say(
              fmt::format("item {} is too large: {}", record.item.key, stored.error().detail));
          self->plan_.leave_alone(record.item.key);
          return self->take_next();
        }
        self->failed_with(fmt::format("item {} cannot be recorded, so it is not taken: {}",
                                      record.item.key, stored.error().detail));
        self->poll_is_over();
      });
      return;
    }
    poll_is_over();
  }

  void take(const ItemRecord& record) {
    CommandSubject about = subject();
    about.job_id = record.item.key;
    about.item = record.item.json;
    auto spec = make_spec(declared().take, about, host_.tools().environment);
    if (!spec) return not_taken(record, spec.error().detail);
    spec->input = item_input(record);
    stop_command_ =
        run_command(loop(), host_.tools().steps,
                    {.name = "take:" + item_note_key(record.ns, record.queue, record.item.key),
                     .spec = *std::move(spec),
                     .timeout = declared().timeout,
                     .output_max = 1ULL << 20},
                    [self = self(), record](const Result<std::string>& output) {
                      // A server that stops kills the command: nobody knows whether it had taken
                      // it.
                      if (self->shutting_down()) return;
                      if (output) return self->taken(record);
                      if (self->giving_back_) return self->perhaps_taken(record);
                      self->not_taken(record, output.error().detail);
                    });
  }

  void not_taken(const ItemRecord& record, const std::string& why) {
    say(fmt::format("item {} not taken: {}", record.item.key, why));
    plan_.leave_alone(record.item.key);
    host_.items().drop(record);
    taking_ = false;
    take_next();
  }

  // Its `take` was ended by us: nobody knows, so somebody has to be told.
  void perhaps_taken(ItemRecord record) {
    record.phase = ItemPhase::failed;
    record.error = *giving_back_;
    taking_ = false;
    tell(std::move(record));
    poll_is_over();
  }

  void taken(ItemRecord record) {
    RunOrder order = order_for(record.item.key, true);
    order.item = record.item.json;
    order.input = item_input(record);
    auto run_id = std::make_shared<std::string>();
    auto run = begin_run(std::move(order), [self = self(), run_id](const RunEnd& end) {
      self->run_ended(*run_id, end);
    });
    if (!run) {
      record.phase = ItemPhase::failed;
      record.error = run.error().detail;
      taking_ = false;
      tell(std::move(record));
      // The next would fare no better.
      (void)plan_.listed(false, declared().poll);
      arm(plan_.wait(declared().poll));
      return poll_is_over();
    }
    *run_id = record.run = (*run)->id();
    record.phase = ItemPhase::running;
    taking_ = false;
    slots_.emplace(record.run, Slot{record, *run});
    host_.items().update(record, [self = self(), record, run = *run] {
      if (run->ended()) return self->take_next();
      self->say(fmt::format("run {} for item {}", record.run, record.item.key));
      if (self->giving_back_) {
        run->abandon(*self->giving_back_);
      } else {
        run->begin();
      }
      self->take_next();
    });
    if (giving_back_) (*run)->abandon(*giving_back_);
  }

  // --- The end ---------------------------------------------------------------------------------

  void run_ended(const std::string& run, const RunEnd& end) {
    const auto slot = slots_.find(run);
    if (slot == slots_.end()) return;
    ItemRecord record = std::move(slot->second.record);
    slots_.erase(slot);
    run_has_ended(run, record.item.key, end);
    host_.run_ends(run, end);
    // Its record stays as it is: the next server tells that it failed.
    if (shutting_down()) return host_.worker_changed(queue_.ns, name_);
    const bool well = end.status == RunStatus::succeeded;
    record.phase = well ? ItemPhase::succeeded : ItemPhase::failed;
    record.error = end.error;
    ++telling_;
    host_.items().update(record, [self = self(), record] {
      --self->telling_;
      self->tell(record);
    });
  }

  void tell(ItemRecord record) {
    ++telling_;
    const std::string key = record.item.key;
    host_.items().tell(std::move(record), book_, [self = self(), key](const std::string& error) {
      --self->telling_;
      if (!error.empty()) self->failed_with(error);
      self->plan_.leave_alone(key);
      self->settle();
      self->poll(PollReason::freed);
    });
  }

  void fill_view(WorkerView& view) const override {
    view.external = true;
    view.last_poll_at = last_poll_at_;
    const auto timers = host_.tools().loop.timers(poll_timer());
    for (const auto& timer : timers) {
      if (timer.name == poll_timer()) view.next_poll_at = timer.due;
    }
  }

  PollPlan plan_;
  std::optional<Duration> armed_for_;  // the interval that the timer was set by
  std::deque<ExternalItem> candidates_;
  std::optional<ItemsInHand::ListMark> list_;  // of the list that runs, or is taken from
  bool taking_ = false;
  std::function<void()> stop_command_;      // the list or take that runs, or ran last
  std::optional<std::string> giving_back_;  // why: nothing is begun any more
  std::uint32_t telling_ = 0;
  std::map<std::string, Slot> slots_;  // by run
  std::optional<Timestamp> last_poll_at_;
  bool list_failed_ = false;
};

}  // namespace

std::shared_ptr<Worker> make_external_worker(WorkerHost& host, Book book,
                                             const runbook::WorkerDeclaration& declaration,
                                             std::shared_ptr<WorkerLog> log) {
  return std::make_shared<ExternalWorker>(host, std::move(book), declaration, std::move(log));
}

}  // namespace reprise::worker
