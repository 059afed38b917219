#include <algorithm>
#include <tuple>

#include "broker/selection.h"
#include "sim/run.h"

namespace reprise::sim {

using namespace std::chrono_literals;

namespace {

bool same_outage(const std::optional<OutageStats>& got, const std::optional<OutageStats>& want) {
  if (!got || !want) return !got && !want;
  const OutageStats& a = *got;
  const OutageStats& b = *want;
  return std::tie(a.state, a.open_until, a.opened, a.spared, a.failure_rate, a.ended,
                  a.canaries_out) == std::tie(b.state, b.open_until, b.opened, b.spared,
                                              b.failure_rate, b.ended, b.canaries_out);
}

bool same_numbers(const QueueStats& a, const QueueStats& b) {
  return a.queue == b.queue && a.by_status == b.by_status && a.bytes == b.bytes &&
         a.oldest_pending_age == b.oldest_pending_age && a.waiting_claims == b.waiting_claims &&
         a.lanes.fresh == b.lanes.fresh && a.lanes.retry == b.lanes.retry &&
         a.lanes.retry_in_flight == b.lanes.retry_in_flight &&
         a.lanes.retry_credit == b.lanes.retry_credit &&
         a.lanes.retries_by_failures == b.lanes.retries_by_failures && a.hooks == b.hooks &&
         same_outage(a.breaker, b.breaker) && a.totals == b.totals;
}

}  // namespace

// What the promises leave open is in the events and the answers.
void Run::listen(ClaimId id, const ClaimReply& reply) {
  Model::Told told;
  std::size_t place = 0;
  for (const Event& event : server_.engine().take_events()) {
    ++heard_events_[static_cast<std::size_t>(event.type)];
    if (event.type == EventType::failed && event.retry_at != kNever) {
      told.retries_at[{*event.queue, event.seq}] = event.retry_at;
    }
    if (event.type == EventType::taken)
      told.met[*event.queue].push_back({.seq = event.seq, .place = ++place});
    if (event.type == EventType::dead && event.reason == DeathReason::expired) {
      told.met[*event.queue].push_back({.seq = event.seq, .died = true, .place = ++place});
    }
  }
  const auto note_owner = [&](ClaimId claim, const ClaimReply& given) {
    for (const ClaimedJob& job : given.jobs) told.given_to[job.token.job.seq] = claim;
  };
  note_owner(id, reply);
  for (Engine::ClaimAnswer& answer : server_.engine().take_answers()) {
    if (answer.reply) note_owner(answer.id, *answer.reply);
    heard_answers_.push_back(std::move(answer));
  }
  told.tick_is_due = server_.engine().next_wake() <= now_;
  model_.hear(std::move(told));
}

void Run::check() {
  if (workload_.asks_hooks_now()) take_hook_work();
  check_answers();
  check_hook_answers();
  check_queues();
  check_operations();
  model_.check_all_is_explained();
  model_.see_throttles(server_.engine().list_throttles("", now_), now_);
  require(server_.engine().next_wake() <= model_.next_wake(now_),
          "the engine would sleep too long");
  require(server_.engine().next_seq() == model_.next_seq(), "the next id is wrong");
}

void Run::check_answers() {
  Model::Answers expected = model_.take_answers();
  for (const auto& [id, reply] : std::exchange(heard_answers_, {})) {
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
    model_.see_credit(name, stats.lanes.retry_credit);
    const QueueStats expected = model_.stats_of(name, now_);
    if (!same_numbers(stats, expected)) compare_text("stats", describe(stats), describe(expected));
    check_keys(stats);
    if (stats.breaker && stats.breaker->state == BreakerState::open) count("outage");
    if (stats.breaker && stats.breaker->state == BreakerState::trial) count("outage on trial");
    if (stats.breaker && stats.breaker->spared > 0) count("failure spared");
    for (const auto& hook : stats.hooks) {
      if (hook && hook->breaker == BreakerState::open) count("breaker open");
      if (hook && hook->breaker == BreakerState::trial) count("breaker on trial");
    }
  }
}

// Runs have few keys, so all are shown; some that are gone may be, too.
void Run::check_keys(const QueueStats& stats) {
  Model::Keys got;
  for (const KeyStats& key : stats.keys.top) {
    if (key.weight > 0) got[key.key] = {key.pending, key.active, key.weight};
  }
  const Model::Keys expected = Model::keys_of(model_.queues().at(stats.queue.name));
  require(got == expected && stats.keys.active == expected.size(),
          fmt::format("keys of {}: got\n  {}\nexpected\n  {}", describe(stats.queue.name),
                      describe(got), describe(expected)));
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
  for (const ThrottleStats& stats : server_.engine().list_throttles("", now_)) {
    unset_throttle(stats.throttle);
    check();
  }
  for (int round = 0; round < 20 && !all_jobs_ended(); ++round) {
    now_ += 1h;
    tick();
    check();
    settle_hooks();
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
    listen();
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
      listen();
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
    // Without this there may be jobs that nobody is ever given.
    edit_queue(name, [](QueueConfig& config) {
      config.fetch.retry_in_flight.reset();
      config.concurrency.reset();
      config.concurrency_per_key.reset();
      config.breaker.reset();
      return ok();
    });
    check();
    claim({.queue = name, .max = 1000});
    check();
  }
  for (const LeaseToken& token : live_tokens()) {
    const AckItem item{token};
    auditor_.end_asked(token.job);
    const auto got = server_.engine().ack({&item, 1}, now_).at(0);
    listen();
    compare("ack", got, model_.ack(item, now_));
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
    if (!job.state.death_note.empty()) count("dead in a hook's own words");
  }
}

}  // namespace reprise::sim
