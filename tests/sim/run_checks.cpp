#include <algorithm>

#include "broker/selection.h"
#include "sim/run.h"

namespace reprise::sim {

using namespace std::chrono_literals;

namespace {

bool same_numbers(const QueueStats& a, const QueueStats& b) {
  return a.queue == b.queue && a.by_status == b.by_status && a.bytes == b.bytes &&
         a.oldest_pending_age == b.oldest_pending_age && a.waiting_claims == b.waiting_claims &&
         a.lanes.fresh == b.lanes.fresh && a.lanes.retry == b.lanes.retry &&
         a.lanes.retry_in_flight == b.lanes.retry_in_flight &&
         a.lanes.retry_credit == b.lanes.retry_credit &&
         a.lanes.retries_by_failures == b.lanes.retries_by_failures && a.totals == b.totals;
}

}  // namespace

// What chance has decided is in the events.
void Run::hear_events() {
  Model::RetryTimes times;
  for (const Event& event : server_.engine().take_events()) {
    ++heard_events_[static_cast<std::size_t>(event.type)];
    if (event.type == EventType::failed && event.retry_at != kNever) {
      times[{*event.queue, event.seq}] = event.retry_at;
    }
  }
  model_.retries_at(std::move(times));
}

void Run::check() {
  check_answers();
  check_queues();
  check_operations();
  require(server_.engine().next_wake() <= model_.next_wake(), "the engine would sleep too long");
  require(server_.engine().next_seq() == model_.next_seq(), "the next id is wrong");
}

void Run::check_answers() {
  Model::Answers expected = model_.take_answers();
  for (const auto& [id, reply] : server_.engine().take_answers()) {
    const auto found = expected.find(id);
    require(found != expected.end(), fmt::format("claim {} was answered for no reason", id));
    trace("  claim {} is answered", id);
    compare("waiting claim", reply, found->second);
    if (reply) given(*reply);
    count(!reply                ? "waiting claim told of its queue's end"
          : reply->jobs.empty() ? "waiting claim ended empty"
                                : "waiting claim got jobs");
    expected.erase(found);
  }
  require(expected.empty(), "a waiting claim was not answered");
}

void Run::check_queues() {
  const auto got = server_.engine().list_queues("", now_);
  require(got.size() == model_.queues().size(), "there are other queues than there should be");
  for (const QueueStats& stats : got) {
    const QueueName& name = stats.queue.name;
    require(model_.queues().contains(name), "queue " + describe(name) + " should not be there");
    const QueueStats expected = model_.stats_of(name, now_);
    if (!same_numbers(stats, expected)) compare_text("stats", describe(stats), describe(expected));
  }
}

void Run::check_operations() {
  const auto& got = server_.engine().operations();
  require(got.size() == model_.operations().size(),
          "there are other operations than there should be");
  for (const auto& [id, operation] : model_.operations()) {
    const auto found = got.find(id);
    require(found != got.end(), fmt::format("operation {} is missing", id));
    compare("operation", found->second, operation);
  }
}

void Run::compare_text(std::string_view what, const std::string& got, const std::string& expected) {
  require(got == expected, fmt::format("{}: got\n  {}\nexpected\n  {}", what, got, expected));
}

void Run::drain() {
  trace("drain");
  set_disk_low(false);
  for (int round = 0; round < 20 && !all_jobs_ended(); ++round) {
    now_ += 1h;
    tick();
    check();
    drain_queues();
    seal();
  }
  require(all_jobs_ended(), "some jobs never end");
  commit(server_.sealed());
  restart(Death::kill);
  check();
  for (const auto& [name, queue] : model_.queues()) count_deaths(queue);
  deal_with_all_dead(dice_.pick({OperationKind::retry, OperationKind::purge}));
}

// By filter, a page at a time: each of them is met, and met once.
void Run::deal_with_all_dead(OperationKind kind) {
  // Only what is stored is found. A commit may fail, and the restart end some jobs; but only once.
  for (int i = 0; i < 2; ++i) {
    seal();
    commit(server_.sealed());
    check();
  }
  std::map<QueueName, std::uint64_t> dead;
  for (const auto& [name, queue] : model_.queues()) dead[name] = Model::totals_of(queue).dead_now;
  for (const auto& [name, count_before] : dead) {
    const StartOperationCommand command{
        .kind = kind, .queue = name, .filter = {.status = JobStatus::dead}};
    auto operation = server_.engine().start_operation(command, now_);
    compare("start operation", operation, model_.start_operation(command, now_));
    while (operation && operation->state == OperationState::running) {
      const auto page = select_page(server_.storage(), *operation, 1 + dice_.below(5));
      require(page.has_value(), page ? "" : "selection: " + page.error().detail);
      require(page->finished || page->cursor != operation->cursor, "a selection does not go on");
      const Engine::OperationStep step{.id = operation->id,
                                       .jobs = page->jobs,
                                       .cursor = page->cursor,
                                       .finished = page->finished};
      operation = server_.engine().step_operation(step, now_);
      compare("step operation", operation, model_.step_operation(step, now_));
    }
    require(operation && operation->done + operation->skipped == count_before,
            fmt::format("a selection of all dead of {} met {} of {}", describe(name),
                        operation ? operation->done + operation->skipped : 0, count_before));
    check();
  }
  seal();
  commit(server_.sealed());
}

void Run::drain_queues() {
  std::vector<QueueName> names;
  for (const auto& [name, queue] : model_.queues()) names.push_back(name);
  for (const QueueName& name : names) {
    pause(name, false);
    check();
    // Without this there may be retries that nobody is ever given.
    edit_queue(name, [](QueueConfig& config) {
      config.fetch.retry_in_flight.reset();
      return ok();
    });
    check();
    claim({.queue = name, .max = 1000});
    check();
  }
  for (const LeaseToken& token : live_tokens()) {
    const AckItem item{token};
    auditor_.end_asked(token.job);
    compare("ack", server_.engine().ack({&item, 1}, now_).at(0), model_.ack(item, now_));
  }
  check();
}

bool Run::all_jobs_ended() const {
  return std::ranges::all_of(model_.queues(), [](const auto& queue) {
    return std::ranges::all_of(queue.second.jobs,
                               [](const auto& job) { return !is_alive(job.second); });
  });
}

void Run::count_deaths(const Model::Queue& queue) {
  for (const auto& [seq, job] : queue.jobs) {
    if (job.state.status != JobStatus::dead) continue;
    count("dead: " + std::string(death_reason_name(job.state.death_reason)));
  }
}

}  // namespace reprise::sim
