#include "broker/sessions.h"

#include <algorithm>
#include <utility>

namespace reprise {
namespace {

using namespace session;

constexpr Duration kDeadlineSoon = std::chrono::seconds(1);
constexpr Duration kForever = std::chrono::hours(24 * 365 * 100);
constexpr std::uint32_t kClaimedAtOnce = 1000;
// Others have their turn in between.
constexpr std::size_t kKickedAtOnce = 250;
constexpr std::string_view kAskedBy = "beanstalk";

// What clients of the protocol expect of a tube: a job whose time ran out is there again.
QueueConfig tube_config() {
  QueueConfig config;
  config.lease = std::chrono::seconds(60);
  config.retry.attempts = std::nullopt;
  return config;
}

Error not_held(Seq seq) {
  return {Errc::job_not_found, "no job " + std::to_string(seq) + " is reserved here"};
}

template <class T>
std::vector<Status> statuses_of(const ItemResults<T>& results) {
  std::vector<Status> statuses;
  statuses.reserve(results.size());
  for (const auto& result : results) {
    statuses.push_back(result ? ok() : Status(result.error()));
  }
  return statuses;
}

}  // namespace

void Sessions::open(SessionId id, SessionOptions options) {
  auto session = std::make_unique<Session>();
  session->id = id;
  session->options = std::move(options);
  sessions_.emplace(id, std::move(session));
}

Sessions::Session* Sessions::find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void Sessions::submit(SessionId id, std::vector<Command> commands, Timestamp now) {
  Session* session = find(id);
  if (session == nullptr) return;
  std::ranges::move(commands, std::back_inserter(session->line));
  if (!session->waiting) run(*session, now);
}

void Sessions::end_waits(SessionId id) {
  Session* session = find(id);
  if (session == nullptr) return;
  session->never_waits = true;
  if (session->claim) engine_.cancel_claim(*session->claim);
}

void Sessions::close(SessionId id, Timestamp now) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const std::unique_ptr<Session> session = std::move(found->second);
  sessions_.erase(found);
  if (session->claim) {
    claims_.erase(*session->claim);
    engine_.cancel_claim(*session->claim);
  }
  std::vector<ReleaseItem> items;
  items.reserve(session->held.size());
  for (const auto& [seq, held] : session->held) {
    items.push_back({.token = held.token, .outcome = AttemptOutcome::worker_lost});
  }
  // In the order of their numbers, so that the same history has the same outcome.
  std::ranges::sort(items, {}, [](const ReleaseItem& item) { return item.token->job.seq; });
  engine_.release(items, now);
}

void Sessions::run(Session& session, Timestamp now) {
  while (!session.line.empty()) {
    const Step step = std::visit([&](auto& command) { return apply(session, command, now); },
                                 session.line.front());
    session.waiting = step == Step::waits;
    if (session.waiting) return;
    session.line.pop_front();
  }
}

void Sessions::go_on(Session& session, Timestamp now) {
  session.line.pop_front();
  session.waiting = false;
  run(session, now);
}

void Sessions::answer(Session& session, Reply reply) {
  session.replies.push_back(std::move(reply));
  if (std::exchange(session.has_told, true)) return;
  told_.push_back(session.id);
}

void Sessions::answer_first(Session& session, Reply reply) {
  session.replies.push_back(std::move(reply));
  if (std::exchange(session.has_told, true)) return;
  told_first_.push_back(session.id);
}

std::vector<Sessions::Told> Sessions::take_replies() {
  std::vector<Told> told;
  told.reserve(told_first_.size() + told_.size());
  for (auto* ids : {&told_first_, &told_}) {
    for (const SessionId id : std::exchange(*ids, {})) {
      Session* session = find(id);
      if (session == nullptr) continue;
      session->has_told = false;
      told.push_back({session->options.sink, std::exchange(session->replies, {})});
    }
  }
  return told;
}

QueueName Sessions::name(const Session& session, const std::string& queue) const {
  return {session.options.ns, queue};
}

Status Sessions::ensure_queue(const QueueName& queue, Timestamp now) {
  if (engine_.has_queue(queue)) return ok();
  const auto put = engine_.put_queue({.queue = queue, .config = tube_config()}, now);
  return put ? ok() : Status(put.error());
}

std::optional<JobKey> Sessions::locate(Session& session, Seq seq) {
  if (const auto held = session.held.find(seq); held != session.held.end()) {
    return held->second.token.job;
  }
  const std::optional<JobKey> job =
      engine_.locate(session.options.ns, std::span(&session.last_queue, 1), seq);
  if (job) session.last_queue = engine_.queue_record(job->queue)->name.name;
  return job;
}

// --- What needs no job ---------------------------------------------------------------------------

Sessions::Step Sessions::apply(Session& session, Say& command, Timestamp) {
  answer(session, std::move(command));
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, UseQueue& command, Timestamp now) {
  answer(session, QueueReady{ensure_queue(name(session, command.queue), now)});
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, PauseQueue& command, Timestamp now) {
  answer(session, Settled{How::paused,
                          {engine_.rest_queue(name(session, command.queue), command.pause, now)}});
  return Step::answered;
}

QueueFacts Sessions::facts_of(QueueStats stats, Timestamp now) const {
  QueueFacts facts;
  facts.urgent = engine_.count_below(stats.queue.name, kUrgentBelow);
  if (const auto rest = engine_.rest_of(stats.queue.name, now)) {
    facts.pause = rest->asked;
    facts.paused_for = rest->left;
  }
  facts.stats = std::move(stats);
  return facts;
}

Sessions::Step Sessions::apply(Session& session, FindQueue& command, Timestamp now) {
  QueueFound found;
  const QueueName queue = name(session, command.queue);
  if (engine_.has_queue(queue)) {
    found.queue =
        std::make_shared<const QueueFacts>(facts_of(*engine_.queue_stats(queue, now), now));
  }
  answer(session, std::move(found));
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, ListQueues&, Timestamp now) {
  AllQueues all;
  for (QueueStats& stats : engine_.list_queues(session.options.ns, now)) {
    all.queues.push_back(facts_of(std::move(stats), now));
  }
  answer(session, std::move(all));
  return Step::answered;
}

// --- Put and fail, which may ask hooks -----------------------------------------------------------

Sessions::Step Sessions::apply(Session& session, Put& command, Timestamp now) {
  const QueueName queue = name(session, command.queue);
  if (const Status ready = ensure_queue(queue, now); !ready) {
    answer(session, PutDone{std::vector<Result<PushedJob>>(command.jobs.size(), ready.error())});
    return Step::answered;
  }
  const RequestId id = host_.next_request();
  const std::size_t count = command.jobs.size();
  auto reply = engine_.push(id, {.queue = queue, .jobs = std::move(command.jobs)}, now);
  if (!reply) {
    requests_.emplace(id, session.id);
    // Its answer may be one refusal for all of them.
    command.jobs.assign(count, Error{Errc::overloaded, ""});
    return Step::waits;
  }
  answer(session, *reply ? PutDone{std::move((*reply)->results)}
                         : PutDone{std::vector<Result<PushedJob>>(count, reply->error())});
  return Step::answered;
}

bool Sessions::take(Engine::PushAnswer& push, Timestamp now) {
  const auto found = requests_.find(push.id);
  if (found == requests_.end()) return false;
  Session* session = find(found->second);
  requests_.erase(found);
  if (session == nullptr) return true;
  const std::size_t count = std::get<Put>(session->line.front()).jobs.size();
  answer(*session, push.reply ? PutDone{std::move(push.reply->results)}
                              : PutDone{std::vector<Result<PushedJob>>(count, push.reply.error())});
  go_on(*session, now);
  return true;
}

Result<LeaseToken> Sessions::token_of(const Session& session, Seq seq) const {
  const auto held = session.held.find(seq);
  if (held == session.held.end()) return not_held(seq);
  return held->second.token;
}

Sessions::Step Sessions::apply(Session& session, Fail& command, Timestamp now) {
  const RequestId id = host_.next_request();
  const FailItem item{.token = token_of(session, command.job), .error = std::move(command.error)};
  session.held.erase(command.job);
  const auto results = engine_.fail(id, std::span(&item, 1), now);
  if (!results) {
    requests_.emplace(id, session.id);
    return Step::waits;
  }
  answer(session, FailDone{results->front(), now});
  return Step::answered;
}

bool Sessions::take(Engine::FailAnswer& fail, Timestamp now) {
  const auto found = requests_.find(fail.id);
  if (found == requests_.end()) return false;
  Session* session = find(found->second);
  requests_.erase(found);
  if (session == nullptr) return true;
  answer(*session, FailDone{std::move(fail.results.front()), now});
  go_on(*session, now);
  return true;
}

// --- Reserve -------------------------------------------------------------------------------------

ClaimCommand Sessions::claim_command(const Session& session, const Reserve& reserve) const {
  ClaimCommand command{.queue = name(session, reserve.queues->front()),
                       .max = std::min(reserve.count, kClaimedAtOnce),
                       .worker = session.options.worker,
                       .own = true};
  for (std::size_t i = 1; i < reserve.queues->size(); ++i) {
    command.also.push_back(name(session, (*reserve.queues)[i]));
  }
  return command;
}

void Sessions::hold(Session& session, const std::vector<ClaimedJob>& jobs) {
  for (const ClaimedJob& job : jobs) {
    session.held.insert_or_assign(job.token.job.seq, Held{job.token, job.lease_deadline});
  }
}

Timestamp Sessions::first_deadline(Session& session, Timestamp now) const {
  Timestamp first = kNever;
  absl::erase_if(session.held, [&](const auto& entry) {
    if (entry.second.deadline <= now) return true;
    first = std::min(first, entry.second.deadline);
    return false;
  });
  return first;
}

Sessions::Step Sessions::apply(Session& session, Reserve& reserve, Timestamp now) {
  for (const std::string& queue : *reserve.queues) {
    if (const Status ready = ensure_queue(name(session, queue), now); !ready) {
      answer(session, NotReserved{Why::not_found, reserve.count});
      return Step::answered;
    }
  }
  while (reserve.count > 0) {
    const ClaimId id = host_.next_claim();
    auto found = engine_.claim(id, claim_command(session, reserve), now);
    if (found && !*found) {
      answer(session, NotReserved{Why::not_found, reserve.count});
      return Step::answered;
    }
    if (!(*found)->jobs.empty()) {
      hold(session, (*found)->jobs);
      reserve.count -= static_cast<std::uint32_t>((*found)->jobs.size());
      answer(session, Reserved{std::move((*found)->jobs)});
      continue;
    }
    const Timestamp deadline = first_deadline(session, now);
    if (deadline != kNever && deadline - now <= kDeadlineSoon) {
      answer(session, NotReserved{Why::deadline_soon, reserve.count});
      return Step::answered;
    }
    if (session.never_waits || (reserve.wait && *reserve.wait <= Duration::zero())) {
      answer(session, NotReserved{Why::timed_out, reserve.count});
      return Step::answered;
    }
    ClaimCommand command = claim_command(session, reserve);
    command.wait = reserve.wait.value_or(kForever);
    if (deadline != kNever) {
      command.wait = std::min(command.wait, deadline - kDeadlineSoon - now);
    }
    // Nothing has changed since it found nothing, so it waits, or there is no room to.
    found = engine_.claim(id, std::move(command), now);
    if (found) {
      answer(session, NotReserved{Why::no_room, reserve.count});
      return Step::answered;
    }
    session.claim = id;
    claims_.emplace(id, session.id);
    return Step::waits;
  }
  return Step::answered;
}

bool Sessions::take(Engine::ClaimAnswer& claim, Timestamp now) {
  const auto found = claims_.find(claim.id);
  if (found == claims_.end()) return false;
  Session& session = *sessions_.at(found->second);
  claims_.erase(found);
  session.claim.reset();
  Reserve& reserve = std::get<Reserve>(session.line.front());
  if (claim.reply && !claim.reply->jobs.empty()) {
    hold(session, claim.reply->jobs);
    reserve.count -= static_cast<std::uint32_t>(claim.reply->jobs.size());
    answer_first(session, Reserved{std::move(claim.reply->jobs)});
  } else {
    const Timestamp deadline = first_deadline(session, now);
    const bool soon = deadline != kNever && deadline - now <= kDeadlineSoon;
    reserve.count -= 1;
    answer(session, NotReserved{soon ? Why::deadline_soon : Why::timed_out, 1});
  }
  session.waiting = false;
  run(session, now);  // the rest of the reserves, if there are more
  return true;
}

Sessions::Step Sessions::apply(Session& session, ReserveJob& command, Timestamp now) {
  const auto job = locate(session, command.job);
  const auto claimed =
      job ? engine_.claim_job(*job, {.worker = session.options.worker, .own = true}, now)
          : Result<ClaimedJob>(not_held(command.job));
  if (!claimed) {
    answer(session, NotReserved{Why::not_found, 1});
    return Step::answered;
  }
  std::vector<ClaimedJob> jobs{*claimed};
  hold(session, jobs);
  answer(session, Reserved{std::move(jobs)});
  return Step::answered;
}

// --- What ends a reserve -------------------------------------------------------------------------

Sessions::Step Sessions::apply(Session& session, Delete& command, Timestamp now) {
  Settled settled{How::deleted, {}};
  settled.items.reserve(command.jobs.size());
  acks_.clear();
  ack_places_.clear();
  const auto ack_gathered = [&] {
    const auto results = engine_.ack(acks_, now);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) continue;
      // The lease was over, so the job is anybody's.
      const std::size_t place = ack_places_[i];
      settled.items[place] = drop(session, command.jobs[place], now);
    }
    acks_.clear();
    ack_places_.clear();
  };
  for (std::size_t i = 0; i < command.jobs.size(); ++i) {
    const Seq seq = command.jobs[i];
    const auto held = session.held.find(seq);
    if (held == session.held.end()) {
      ack_gathered();
      settled.items.push_back(drop(session, seq, now));
      continue;
    }
    acks_.push_back({held->second.token});
    ack_places_.push_back(i);
    settled.items.push_back(ok());
    session.held.erase(held);
  }
  ack_gathered();
  answer(session, std::move(settled));
  return Step::answered;
}

Status Sessions::drop(Session& session, Seq seq, Timestamp now) {
  const auto job = locate(session, seq);
  if (!job) return not_held(seq);
  if (engine_.has_lease(*job)) return not_held(seq);
  const QueueName queue = engine_.queue_record(job->queue)->name;
  const auto dropped = engine_.drop(queue, seq, std::string(kAskedBy), now);
  return dropped ? ok() : Status(dropped.error());
}

Sessions::Step Sessions::apply(Session& session, Release& command, Timestamp now) {
  std::vector<ReleaseItem> items;
  items.reserve(command.items.size());
  for (const Release::Item& item : command.items) {
    items.push_back(
        {.token = token_of(session, item.job), .delay = item.delay, .priority = item.priority});
    session.held.erase(item.job);
  }
  answer(session, Settled{How::released, statuses_of(engine_.release(items, now))});
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, Bury& command, Timestamp now) {
  std::vector<BuryItem> items;
  items.reserve(command.items.size());
  for (const Bury::Item& item : command.items) {
    items.push_back({.token = token_of(session, item.job), .priority = item.priority});
    session.held.erase(item.job);
  }
  answer(session, Settled{How::buried, statuses_of(engine_.bury_leased(items, now))});
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, Touch& command, Timestamp now) {
  std::vector<ExtendItem> items;
  items.reserve(command.jobs.size());
  for (const Seq seq : command.jobs) items.push_back({.token = token_of(session, seq)});
  const auto results = engine_.extend(items, now);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) session.held[command.jobs[i]].deadline = results[i]->lease_deadline;
  }
  answer(session, Settled{How::touched, statuses_of(results)});
  return Step::answered;
}

// --- Kick ----------------------------------------------------------------------------------------

Sessions::Step Sessions::apply(Session& session, KickJob& command, Timestamp now) {
  const auto job = locate(session, command.job);
  answer(session, Settled{How::kicked,
                          {job ? engine_.make_pending(*job, now) : Status(not_held(command.job))}});
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, Kick& command, Timestamp now) {
  const QueueName queue = name(session, command.queue);
  session.kicked = 0;
  if (!engine_.has_queue(queue) || command.most == 0) {
    answer(session, Kicked{0});
    return Step::answered;
  }
  if (engine_.dead_in(queue) == 0) {
    if (!kick_delayed(session, command, now)) {
      host_.later([this, id = session.id](Timestamp at) { kick_further(id, at); });
      return Step::waits;
    }
    answer(session, Kicked{session.kicked});
    return Step::answered;
  }
  find_dead(session, *engine_.find_queue(queue), std::nullopt, command.most);
  return Step::waits;
}

void Sessions::find_dead(Session& session, QueueNumber queue,
                         std::optional<storage::EndingKey> after, std::uint64_t most) {
  session.dead_asked_for = std::min<std::uint64_t>(most, kKickedAtOnce);
  host_.find_dead(queue, after, session.dead_asked_for,
                  [this, id = session.id](Result<std::vector<Ended>> found, Timestamp now) {
                    kick_dead(id, std::move(found), now);
                  });
}

// The next ones are looked for while these are kicked.
void Sessions::kick_dead(SessionId id, Result<std::vector<Ended>> found, Timestamp now) {
  Session* session = find(id);
  if (session == nullptr) return;
  Kick& command = std::get<Kick>(session->line.front());
  if (found && !found->empty() && command.most > 0) {
    const storage::EndingKey last = found->back().key;
    const bool were_all = found->size() < session->dead_asked_for;
    const bool looks_on = !were_all && command.most > found->size();
    if (looks_on) find_dead(*session, last.queue, last, command.most - found->size());
    SelectionCommand retry{.queue = name(*session, command.queue),
                           .asked_by = std::string(kAskedBy)};
    retry.jobs.reserve(found->size());
    for (const Ended& dead : *found) retry.jobs.push_back({.seq = dead.key.seq});
    const auto reply = engine_.retry(retry, now);
    session->kicked += reply ? reply->done : 0;
    command.most -= reply ? reply->done : command.most;
    if (looks_on) return;
    // Some could not be kicked.
    if (!were_all && command.most > 0) return find_dead(*session, last.queue, last, command.most);
  }
  answer(*session, Kicked{session->kicked});
  go_on(*session, now);
}

bool Sessions::kick_delayed(Session& session, Kick& command, Timestamp now) {
  const QueueName queue = name(session, command.queue);
  for (std::size_t i = 0; i < kKickedAtOnce && command.most > 0; ++i) {
    const auto number = engine_.find_queue(queue);
    const auto next = engine_.next_delayed(queue);
    if (!number || !next || !engine_.make_pending({*number, *next}, now)) return true;
    ++session.kicked;
    --command.most;
  }
  return command.most == 0;
}

void Sessions::kick_further(SessionId id, Timestamp now) {
  Session* session = find(id);
  if (session == nullptr) return;
  if (!kick_delayed(*session, std::get<Kick>(session->line.front()), now)) {
    return host_.later([this, id](Timestamp at) { kick_further(id, at); });
  }
  answer(*session, Kicked{session->kicked});
  go_on(*session, now);
}

// --- Looking -------------------------------------------------------------------------------------

std::optional<JobFound> Sessions::look_at(Session& session, std::optional<JobKey> job,
                                          Timestamp now) {
  if (!job) return std::nullopt;
  auto sight = engine_.look_at(*job, now);
  if (!sight) return std::nullopt;
  session.last_queue = engine_.queue_record(job->queue)->name.name;
  // A copy: the engine's own may change on its thread, and this one leaves it.
  StatePtr state;
  if (sight->state) state = std::make_shared<const JobState>(*sight->state);
  return JobFound{.seq = job->seq,
                  .queue = session.last_queue,
                  .status = sight->status,
                  .record = std::move(sight->record),
                  .state = std::move(state),
                  .lease = sight->lease,
                  .now = now};
}

Sessions::Step Sessions::apply(Session& session, FindJob& command, Timestamp now) {
  answer(session, Found{look_at(session, locate(session, command.job), now)});
  return Step::answered;
}

Sessions::Step Sessions::apply(Session& session, FindNext& command, Timestamp now) {
  const QueueName queue = name(session, command.queue);
  if (!engine_.has_queue(queue)) {
    answer(session, Found{});
    return Step::answered;
  }
  const QueueNumber number = *engine_.find_queue(queue);
  if (command.which == Which::buried) {
    if (engine_.dead_in(queue) == 0) {
      answer(session, Found{});
      return Step::answered;
    }
    host_.find_dead(number, std::nullopt, 1,
                    [this, id = session.id](Result<std::vector<Ended>> found, Timestamp at) {
                      Session* waiting = find(id);
                      if (waiting == nullptr) return;
                      std::optional<JobKey> job;
                      if (found && !found->empty()) {
                        job = JobKey{found->front().key.queue, found->front().key.seq};
                      }
                      answer(*waiting, Found{look_at(*waiting, job, at)});
                      go_on(*waiting, at);
                    });
    return Step::waits;
  }
  const auto next = command.which == Which::ready ? engine_.next_pending(queue, now)
                                                  : engine_.next_delayed(queue);
  answer(session,
         Found{look_at(session, next ? std::optional(JobKey{number, *next}) : std::nullopt, now)});
  return Step::answered;
}

}  // namespace reprise
