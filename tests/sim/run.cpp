#include "sim/run.h"

#include <algorithm>

namespace reprise::sim {

using namespace std::chrono_literals;

Run::Run(const SimulationOptions& options)
    : options_(options),
      dice_(options.seed),
      workload_(dice_),
      runner_(dice_),
      server_({.disk = options.disk,
               .sabotage = options.sabotage,
               .cache_bytes = workload_.cache_bytes(),
               .seed = dice_.seed()}) {
  model_.believe(options.sabotage);
}

void Run::run() {
  for (int i = 0; i < 4 && workload_.starts_configured(); ++i) {
    put_queue(workload_.queue_name(), workload_.queue_config());
  }
  for (int i = 0; i < kSteps; ++i) {
    step(workload_.next_step());
    check();
  }
  drain();
}

void Run::step(Step step) {
  switch (step) {
    case Step::push:
      return push(workload_.push());
    case Step::claim:
      return claim(workload_.claim());
    case Step::cancel_claim:
      return cancel_some_claim();
    case Step::ack:
      return ack();
    case Step::fail:
      return fail();
    case Step::release:
      return release();
    case Step::extend:
      return extend();
    case Step::drop:
      return drop();
    case Step::retry:
      return retry();
    case Step::purge:
      return purge();
    case Step::start_operation:
      return start_operation();
    case Step::step_operation:
      return step_operation();
    case Step::cancel_operation:
      return cancel_operation();
    case Step::sweep:
      return sweep();
    case Step::finish_webhooks:
      return finish_webhooks();
    case Step::answer_hooks:
      return answer_hooks(runner_.answer_some());
    case Step::set_config:
      return set_config();
    case Step::unset_config:
      return unset_config();
    case Step::set_throttle:
      return set_throttle();
    case Step::unset_throttle:
      return unset_throttle(workload_.throttle());
    case Step::put_queue:
      return put_queue(workload_.queue_name(), workload_.queue_config());
    case Step::edit_queue:
      return edit_queue(workload_.queue_name(), workload_.config_edit());
    case Step::pause:
      return pause(workload_.queue_name(), true);
    case Step::resume:
      return pause(workload_.queue_name(), false);
    case Step::delete_queue:
      return delete_queue();
    case Step::forget_keys:
      return forget_keys();
    case Step::toggle_disk_low:
      return set_disk_low(!disk_low_);
    case Step::let_time_pass:
      return let_time_pass(workload_.time_step());
    case Step::tick:
      return tick();
    case Step::seal:
      return seal();
    case Step::commit:
      return commit(1);
    case Step::sync:
      return sync();
    case Step::settle:
      return server_.settle();
    case Step::kill:
      return restart(Death::kill);
    case Step::cut_power:
      return restart(Death::power_cut);
    case Step::fail_sync:
      return server_.fail_next_sync();
  }
}

void Run::push(const PushCommand& command) {
  trace("push {}", describe(command));
  const RequestId id = ++last_request_;
  const auto got = server_.engine().push(id, command, now_);
  listen();
  compare("push", got, model_.push(id, command, now_));
  if (got) return pushed(command.queue, *got);
  waiting_pushes_[id] = command.queue;
  count("push waits for its hook");
}

// A push was answered, now or later.
void Run::pushed(const QueueName& name, const Result<PushReply>& reply) {
  if (!reply) return count("push refused: " + describe_error(reply.error()));
  const QueueNumber queue = model_.queues().at(name).record.number;
  for (const auto& pushed : reply->results) {
    count(!pushed             ? "push refused: " + describe_error(pushed.error())
          : pushed->duplicate ? "duplicate push"
                              : "push");
    if (!pushed || pushed->duplicate) continue;
    const JobKey job{queue, pushed->seq};
    server_.reply_when_synced([this, job] { auditor_.told_pushed(job); });
  }
}

void Run::claim(const ClaimCommand& command) {
  const ClaimId id = ++last_claim_;
  trace("claim {}: {}", id, describe(command));
  const auto got = server_.engine().claim(id, command, now_);
  listen(id, got && *got ? **got : ClaimReply{});
  compare("claim", got, model_.claim(id, command, now_));
  if (got && *got) given(**got);
  count(!got ? "claim waits" : "claim answered at once");
}

// A claim was answered, now or later.
void Run::given(const ClaimReply& reply) {
  model_.learn(reply);
  auditor_.granted(reply, now_);
  for (const ClaimedJob& job : reply.jobs) {
    trace("  given {}", describe(job.token));
    tokens_.push_back(job.token);
    count(job.failures > 0 ? "retry given" : "fresh job given");
    tell_lease_when_synced(job.token.job, job.lease_deadline);
    const QueueName& queue = server_.engine().queue_record(job.token.job.queue)->name;
    server_.reply_when_synced([this, ns = queue.ns, record = job.record, at = now_] {
      auditor_.told_started(ns, *record, at);
    });
  }
}

void Run::tell_lease_when_synced(JobKey job, Timestamp until) {
  server_.reply_when_synced([this, job, until, touches = auditor_.touches(job)] {
    auditor_.told_leased(job, until, touches);
  });
}

void Run::cancel_some_claim() {
  if (last_claim_ == 0) return;
  cancel_claim(last_claim_ - dice_.below(std::min<ClaimId>(last_claim_, 4)));
}

void Run::cancel_claim(ClaimId id) {
  trace("cancel claim {}", id);
  server_.engine().cancel_claim(id);
  listen();
  model_.cancel_claim(id);
}

void Run::ack() {
  const auto make_item = [] { return AckItem{}; };
  for (const Acked& acked : use_tokens("ack", make_item, &Engine::ack, &Model::ack)) {
    server_.reply_when_synced([this, acked] { auditor_.told_acked(acked.job); });
  }
}

void Run::fail() {
  const auto items = items_with_tokens("fail", [&] { return workload_.fail(); });
  const RequestId id = ++last_request_;
  const auto got = server_.engine().fail(id, items, now_);
  listen();
  compare("fail", got, model_.fail(id, items, now_));
  if (got) return failed(*got);
  count("fail waits for its hook");
}

// A fail was answered, now or later.
void Run::failed(const ItemResults<Failed>& results) {
  for (const auto& result : results) {
    count(result ? "fail" : "fail refused: " + describe_error(result.error()));
  }
}

void Run::release() {
  use_tokens(
      "release", [&] { return workload_.release(); }, &Engine::release, &Model::release);
}

void Run::extend() {
  const auto make_item = [&] { return workload_.extend(); };
  for (const Extended& extended :
       use_tokens("extend", make_item, &Engine::extend, &Model::extend)) {
    tell_lease_when_synced(extended.job, extended.lease_deadline);
  }
}

Result<LeaseToken> Run::some_token() {
  if (dice_.percent(3)) return Error{Errc::invalid_lease_token, "no token"};
  const auto live = live_tokens();
  if (!live.empty() && dice_.percent(85)) return live[dice_.below(live.size())];
  LeaseToken token{.job = {1, 1}, .nonce = dice_.seed()};
  if (!tokens_.empty()) token = tokens_[dice_.below(tokens_.size())];
  if (dice_.percent(10)) token.nonce ^= 1;
  if (dice_.percent(5)) token.job.seq += 1;
  return token;
}

std::vector<LeaseToken> Run::live_tokens() const {
  std::vector<LeaseToken> live;
  for (const auto& [name, queue] : model_.queues()) {
    for (const auto& [seq, job] : queue.jobs) {
      if (job.state.status != JobStatus::active || queue.undecided.contains(seq)) continue;
      live.push_back({{queue.record.number, seq}, job.state.lease_nonce});
    }
  }
  return live;
}

Seq Run::some_job(const QueueName& name) {
  const auto queue = model_.queues().find(name);
  if (queue == model_.queues().end() || queue->second.jobs.empty() || dice_.percent(20)) {
    return 1 + dice_.below(model_.next_seq());
  }
  const auto& jobs = queue->second.jobs;
  return std::next(jobs.begin(), static_cast<std::ptrdiff_t>(dice_.below(jobs.size())))->first;
}

void Run::drop() {
  const QueueName name = workload_.queue_name();
  const Seq seq = some_job(name);
  trace("drop {} {}", describe(name), seq);
  const auto queue = model_.queues().find(name);
  if (queue != model_.queues().end()) auditor_.end_asked({queue->second.record.number, seq});
  const auto got = server_.engine().drop(name, seq, "me", now_);
  listen();
  compare("drop", got, model_.drop(name, seq, "me", now_));
  if (got) count("dropped while " + std::string(status_name(got->status)));
}

void Run::put_queue(const QueueName& name, const QueueConfig& config) {
  trace("put queue {}", describe(QueueRecord{.name = name, .config = config}));
  const auto got = server_.engine().put_queue({.queue = name, .config = config}, now_);
  listen();
  compare("put queue", got ? Result<bool>(got->created) : Result<bool>(got.error()),
          model_.put_queue(name, config, now_));
  if (!got) count("put queue refused: " + describe_error(got.error()));
}

void Run::edit_queue(const QueueName& name, const ConfigEdit& edit) {
  trace("edit queue {}", describe(name));
  const Status got = without_value(server_.engine().edit_queue(name, edit, now_));
  listen();
  compare("edit queue", got, model_.edit_queue(name, edit, now_));
}

void Run::pause(const QueueName& name, bool paused) {
  trace("{} {}", paused ? "pause" : "resume", describe(name));
  const Status got = without_value(server_.engine().pause_queue(name, paused, now_));
  listen();
  compare("pause", got, model_.pause_queue(name, paused, now_));
}

void Run::delete_queue() {
  const QueueName name = workload_.queue_name();
  trace("delete queue {}", describe(name));
  const auto queue = model_.queues().find(name);
  if (queue != model_.queues().end()) {
    for (const auto& [seq, job] : queue->second.jobs) {
      auditor_.end_asked({queue->second.record.number, seq});
    }
    count("queue deleted");
  }
  const Status got = without_value(server_.engine().delete_queue(name, "me", now_));
  listen();
  compare("delete queue", got, model_.delete_queue(name, "me", now_));
}

void Run::forget_keys() {
  std::vector<Engine::StoredKey> keys;
  for (const auto& [name, queue] : model_.queues()) {
    for (const auto& [key, entry] : queue.keys) keys.push_back({queue.record.number, key});
  }
  trace("forget keys that are over, of {}", keys.size());
  server_.engine().forget_keys(keys, now_);
  for (const auto& [queue, key] : keys) model_.forget_key(queue, key, now_);
}

void Run::set_disk_low(bool low) {
  trace("disk {}", low ? "low" : "has room");
  disk_low_ = low;
  server_.engine().set_disk_low(low);
  model_.set_disk_low(low);
}

void Run::let_time_pass(Duration by) {
  now_ += by;
  trace("{}us later", by.count());
  if (workload_.ticks_after_time_step()) tick();
}

void Run::tick() {
  for (const ClaimId id : model_.claims_that_a_tick_may_race(now_)) cancel_claim(id);
  // More than one would get their numbers in that order.
  if (const auto names = model_.queues_that_a_tick_may_make(now_); names.size() > 1) {
    for (const QueueName& name : names) put_queue(name, {});
  }
  check_answers();
  // Whom a token wakes may make room for another.
  constexpr int kTicksMax = 20;
  for (int i = 0; i == 0 || (i < kTicksMax && server_.engine().next_wake() <= now_); ++i) {
    trace("tick");
    server_.tick(now_);
    listen();
    model_.tick(now_);
    model_.see_throttles(server_.engine().list_throttles("", now_), now_);
  }
  require(server_.engine().next_wake() > now_, "a tick has left work behind");
  require(!model_.somebody_waits_in_vain(now_), "a tick has left somebody waiting");
}

void Run::seal() {
  trace("seal");
  const std::vector<Event> events = server_.seal(model_, now_);
  Model::EventCounts counts = std::exchange(heard_events_, {});
  for (const Event& event : events) ++counts[static_cast<std::size_t>(event.type)];
  require(counts == model_.take_events(), "the batch has other events than it should");
  while (server_.sealed() > workload_.max_sealed()) commit(1);
  if (server_.unsettled() > workload_.max_unsettled()) server_.settle();
}

void Run::commit(std::size_t batches) {
  for (; batches > 0 && server_.sealed() > 0; --batches) {
    const bool synced = workload_.commits_synced();
    trace("commit, {}", synced ? "synced" : "buffered");
    if (!server_.commit_next(synced ? storage::Durability::synced
                                    : storage::Durability::buffered)) {
      count("commit failed");
      return restart(Death::power_cut);
    }
    server_.check_storage();
  }
}

void Run::sync() {
  trace("sync");
  if (server_.sync()) return;
  count("sync failed");
  restart(Death::power_cut);
}

void Run::restart(Death death) {
  Server::Survivor survivor = server_.restart(death, dice_.seed());
  trace("{}; {} commits are lost", death == Death::kill ? "killed" : "power cut",
        survivor.lost_batches);
  count(death == Death::kill ? "killed" : "power cut");
  if (survivor.lost_batches > 0) count("unsynced commits lost");
  if (options_.sabotage == Sabotage::lose_credit) survivor.model.keep_credit_of(model_);
  model_ = std::move(survivor.model);
  model_.believe(options_.sabotage);
  heard_events_ = {};
  heard_answers_.clear();
  disk_low_ = false;
  waiting_pushes_.clear();
  runner_.lose_all();
  auditor_.check_nothing_is_lost(survivor.image);
  // The wall clock may have been set back meanwhile; what is stored keeps time from following.
  if (dice_.percent(30)) now_ = std::clamp(survivor.clock, kStart, now_);
  if (dice_.percent(70)) tick();
}

}  // namespace reprise::sim
