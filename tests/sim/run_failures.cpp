// Steps that deal with jobs that were given up.
#include <algorithm>

#include "broker/endings.h"
#include "broker/selection.h"
#include "sim/run.h"

namespace reprise::sim {

// Mostly jobs that it can be done to.
SelectionCommand Run::some_selection() {
  SelectionCommand command{.queue = workload_.queue_name(),
                           .asked_by = dice_.percent(50) ? "ops" : ""};
  std::vector<Seq> likely;
  if (const auto queue = model_.queues().find(command.queue); queue != model_.queues().end()) {
    for (const auto& [seq, job] : queue->second.jobs) {
      const bool given_up =
          job.state.status == JobStatus::dead || job.state.status == JobStatus::failed;
      if (given_up || !job.state.origin_queue.empty()) likely.push_back(seq);
    }
  }
  for (std::uint64_t n = dice_.percent(60) ? 1 : dice_.below(13); n > 0; --n) {
    const Seq seq = !likely.empty() && dice_.percent(70) ? likely[dice_.below(likely.size())]
                                                         : some_job(command.queue);
    command.jobs.push_back({encode_job_id(seq), seq});
  }
  if (dice_.percent(5)) command.jobs.push_back({"7ZK", Error{Errc::ambiguous_id, "two jobs"}});
  if (dice_.percent(5)) command.jobs.push_back({"000", Error{Errc::job_not_found, "no job"}});
  return command;
}

void Run::retry() {
  const SelectionCommand command = some_selection();
  trace("retry {}", describe(command));
  const auto got = server_.engine().retry(command, now_);
  listen();
  compare("retry", got, model_.retry(command, now_));
  if (!got) return count("retry refused: " + describe_error(got.error()));
  if (got->done > 0) count("retry by hand");
  if (got->first_refusal) {
    count("retry by hand refused: " + describe_error(*got->first_refusal));
  }
}

void Run::purge() {
  const SelectionCommand command = some_selection();
  trace("purge {}", describe(command));
  for (const SelectedJob& job : command.jobs) {
    if (job.seq) auditor_.end_asked({0, *job.seq});
  }
  const auto got = server_.engine().purge(command, now_);
  listen();
  compare("purge", got, model_.purge(command, now_));
  if (got && got->done > 0) count("purge");
  if (got && got->first_refusal) count("purge refused: " + describe_error(*got->first_refusal));
}

void Run::start_operation() {
  const StartOperationCommand command = workload_.operation();
  trace("start {} of {}", operation_kind_name(command.kind), describe(command.queue));
  const auto got = server_.engine().start_operation(command, now_);
  listen();
  compare("start operation", got, model_.start_operation(command, now_));
}

OperationId Run::some_operation() { return 1 + dice_.below(model_.next_operation()); }

void Run::step_operation() {
  const auto operation = server_.engine().operation(some_operation());
  const Engine::OperationStep step =
      operation ? next_step_of(*operation) : Engine::OperationStep{.id = some_operation()};
  trace("step operation {}: {} jobs{}", step.id, step.jobs.size(), step.finished ? ", last" : "");
  if (operation && operation->kind == OperationKind::purge) {
    for (const Seq seq : step.jobs) auditor_.end_asked({0, seq});
  }
  const auto got = server_.engine().step_operation(step, now_);
  listen();
  compare("step operation", got, model_.step_operation(step, now_));
  if (!got || !operation || operation->state != OperationState::running) return;
  count(fmt::format("{} by filter {}", operation_kind_name(got->kind),
                    operation_state_name(got->state)));
  if (got->done > operation->done) {
    count(fmt::format("{} by filter did some", operation_kind_name(got->kind)));
  }
}

// As the housekeeper finds it in what is stored by now, or anything else: each job is judged again.
Engine::OperationStep Run::next_step_of(const Operation& operation) {
  Engine::OperationStep step{.id = operation.id};
  if (operation.state == OperationState::running && dice_.percent(70)) {
    const auto page = select_page(server_.storage(), operation, 1 + dice_.below(5));
    require(page.has_value(), page ? "" : "selection: " + page.error().detail);
    step.jobs = page->jobs;
    step.cursor = page->cursor;
    step.finished = page->finished;
    return step;
  }
  for (std::uint64_t n = dice_.below(14); n > 0; --n) step.jobs.push_back(some_job(operation.name));
  step.cursor = operation.cursor;
  step.finished = dice_.percent(10);
  if (dice_.percent(3)) step.failed = "the disk cannot be read";
  return step;
}

void Run::cancel_operation() {
  const OperationId id = some_operation();
  trace("cancel operation {}", id);
  const auto got = server_.engine().cancel_operation(id, "boss", now_);
  listen();
  compare("cancel operation", got, model_.cancel_operation(id, "boss", now_));
  if (got) count("operation cancelled");
}

// As the housekeeper does it, with what is stored by now: some of it is out of date.
void Run::sweep() {
  auto keepings = server_.engine().keepings(now_);
  std::ranges::sort(keepings, {}, &Engine::Keeping::queue);
  compare("keepings", keepings, model_.keepings(now_));
  const auto snapshot = server_.storage().snapshot();
  std::vector<Engine::EndedRef> refs;
  const auto take = [&](QueueNumber queue, storage::EndKind kind, const auto& cause_of) {
    const Endings endings(*snapshot, queue, kind);
    const auto found = endings.oldest(endings.from(Timestamp{}), endings.end(), 1000);
    require(found.has_value(), "the list of endings cannot be read");
    std::uint64_t place = 0;
    for (const Ended& ended : *found) {
      const std::optional<PurgeCause> cause = cause_of(ended, place++);
      if (!cause && !dice_.percent(5)) continue;  // not over: that must be noticed
      const bool is_dead = kind == storage::EndKind::dead;
      refs.push_back({{queue, ended.key.seq},
                      is_dead ? JobStatus::dead : JobStatus::completed,
                      ended.key.at,
                      cause.value_or(PurgeCause::keep_dead)});
    }
  };
  for (const Engine::Keeping& keeping : keepings) {
    take(keeping.queue, storage::EndKind::dead, [&](const Ended& ended, std::uint64_t place) {
      if (place < keeping.dead_beyond_max) return std::optional(PurgeCause::max_dead);
      const bool over = keeping.dead_before && ended.key.at < *keeping.dead_before;
      return over ? std::optional(PurgeCause::keep_dead) : std::nullopt;
    });
    take(keeping.queue, storage::EndKind::completed, [&](const Ended& ended, std::uint64_t) {
      const bool over = keeping.completed_before && ended.key.at < *keeping.completed_before;
      return over ? std::optional(PurgeCause::keep_dead) : std::nullopt;
    });
  }
  trace("sweep: {} of {} queues", refs.size(), keepings.size());
  for (const Engine::EndedRef& ref : refs) auditor_.end_asked(ref.job);
  const auto ended_now = [&] {
    std::uint64_t jobs = 0;
    for (const auto& [name, queue] : model_.queues()) jobs += queue.jobs.size();
    return jobs;
  };
  const std::uint64_t before = ended_now();
  server_.engine().let_go(refs, now_);
  for (const Engine::EndedRef& ref : refs) model_.let_go(ref, now_);
  if (before - ended_now() > 0) count("let go of ended jobs");
  if (before - ended_now() < refs.size()) count("ended jobs kept after all");
}

void Run::finish_webhooks() {
  std::vector<WebhookKey> keys;
  for (const auto& [key, dead] : model_.webhooks()) {
    if (dice_.percent(50)) keys.push_back(key);
  }
  if (dice_.percent(10)) keys.push_back({.died_at = now_, .queue = 1, .seq = 1});
  trace("webhooks: {} of {} were told", keys.size(), model_.webhooks().size());
  server_.engine().finish_webhooks(keys);
  for (const WebhookKey& key : keys) model_.finish_webhook(key);
  if (!keys.empty()) count("webhook told");
}

}  // namespace reprise::sim
