#include "broker/threaded_broker_impl.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/thread_name.h"
#include "broker/job_reader.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

// An open batch of this size waits for the committer before it takes more.
constexpr std::size_t kOpenBytesMax = 32U << 20;
constexpr std::size_t kOpenCommandsMax = 20'000;
// A batch of no more than this is committed by the thread that has applied it, if nothing waits
// behind it: who is alone waits for no thread to wake up. With more of them the next batch gathers
// while one is written.
constexpr std::size_t kCommandsCommittedHere = 1;
constexpr std::size_t kBytesCommittedHere = 64U << 10;
// No more than this is applied by the thread that brings it: an io thread has others to read from.
constexpr std::size_t kCommandsAttendedTo = 32;
constexpr std::size_t kBytesAttendedTo = 8U << 10;
// With so much in line the engine's thread begins before the rest is there.
constexpr std::size_t kMuchInLineBytes = 64U << 10;
constexpr std::size_t kReadsQueuedMax = 1'000;
constexpr std::size_t kScansQueuedMax = 100;
constexpr std::size_t kMaintenanceQueuedMax = 100'000;
constexpr Duration kKeySweepInterval = std::chrono::minutes(10);
constexpr std::size_t kKeysPerSweepStep = 1'000;

std::size_t size_of(const PushCommand& command) {
  std::size_t size = 0;
  for (const auto& job : command.jobs) size += job ? job->payload.size() + 256 : 256;
  return size;
}

}  // namespace

namespace {

std::vector<Operation> running_operations(const Engine& engine) {
  std::vector<Operation> running;
  for (const auto& [id, operation] : engine.operations()) {
    if (operation.state == OperationState::running) running.push_back(operation);
  }
  return running;
}

}  // namespace

std::string_view durability_mode_name(DurabilityMode mode) {
  switch (mode) {
    case DurabilityMode::sync:
      return "sync";
    case DurabilityMode::interval:
      return "interval";
    case DurabilityMode::none:
      return "none";
  }
  return "unknown";
}

Result<std::unique_ptr<Broker>> Broker::open(storage::Storage& storage, const Clock& clock,
                                             Random& random, BrokerOptions options) {
  auto core = BrokerCore::recover(storage, random,
                                  {.limits = options.limits, .cache_bytes = options.cache_bytes});
  if (!core) return core.error();
  return std::make_unique<ThreadedBroker>(storage, clock, std::move(*core), std::move(options));
}

ThreadedBroker::ThreadedBroker(storage::Storage& storage, const Clock& clock,
                               std::unique_ptr<BrokerCore> core, BrokerOptions options)
    : storage_(storage),
      clock_(clock),
      options_(std::move(options)),
      events_(static_cast<std::uint64_t>(clock.now().time_since_epoch().count())),
      disk_guard_(options_.free_disk_bytes, options_.disk_reserve_bytes),
      core_(std::move(core)),
      unfinished_(running_operations(core_->engine())),
      sessions_(std::make_unique<Sessions>(core_->engine(), session_host())),
      last_now_(clock.now()),
      next_key_sweep_(last_now_ + kKeySweepInterval),
      reader_("reader", kReadsQueuedMax),
      scanner_("scanner", kScansQueuedMax),
      maintenance_("maintenance", kMaintenanceQueuedMax),
      committer_(storage, events_, options_.durability, options_.sync_interval,
                 {.on_committed = [this](std::uint64_t batch) { on_committed(batch); },
                  .on_fatal = [this](const Error& error) { on_fatal(error); }}),
      hooks_(start_hooks()),
      engine_thread_([this] { run_engine(); }),
      housekeeper_(std::make_unique<Housekeeper>(storage, clock, housekeeping())) {
  for (const Operation& operation : unfinished_) {
    housekeeper_->begin(operation, Duration::zero(), nullptr);
  }
}

ThreadedBroker::~ThreadedBroker() { stop(); }

void ThreadedBroker::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  housekeeper_->stop();
  if (engine_thread_.joinable()) engine_thread_.join();
  hooks_->stop();
  committer_.stop();
  reader_.stop();
  scanner_.stop();
  interrupted_ = true;
  storage_.interrupt_maintenance();
  maintenance_.stop();
}

void ThreadedBroker::on_fatal(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    fatal_ = true;
  }
  wake_.notify_one();
  if (options_.on_fatal) options_.on_fatal(error);
}

// --- Commands -------------------------------------------------------------------------------

Status ThreadedBroker::admit(Queued queued, Wake wake) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || fatal_) return Error{Errc::shutting_down, "the server is stopping"};
    if (inbox_.size() >= options_.max_queued_commands ||
        inbox_bytes_ + queued.bytes > options_.max_queued_bytes) {
      return Error{Errc::overloaded, "too many commands are waiting; try again in a moment"};
    }
    const bool was_much = inbox_is_much();
    inbox_bytes_ += queued.bytes;
    inbox_.push_back(std::move(queued));
    if (wake == Wake::later) {
      // With much in line there is no reason to wait for the rest.
      if (!inbox_is_much() || was_much) return ok();
    } else if (inbox_.size() > 1) {
      return ok();  // its thread knows already, or whoever came first will tell
    }
  }
  wake_.notify_one();
  return ok();
}

void ThreadedBroker::admit_own(Task task) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back({std::move(task)});
  }
  wake_.notify_one();
}

void ThreadedBroker::push(PushCommand command, Done<PushReply> done) {
  const std::size_t bytes = size_of(command);
  post_waiting<PushReply>(
      std::move(done), bytes, waiting_pushes_,
      [this, command = std::move(command)](RequestId id, Timestamp now) mutable {
        return core_->engine().push(id, std::move(command), now);
      });
}

ClaimId ThreadedBroker::claim(ClaimCommand command, Done<ClaimReply> done) {
  const ClaimId id = next_claim_++;
  auto shared_done = std::make_shared<Done<ClaimReply>>(std::move(done));
  Task task = [this, id, shared_done, command = std::move(command)](Timestamp now) mutable {
    if (auto reply = core_->engine().claim(id, std::move(command), now)) {
      reply_with_batch<ClaimReply>(std::move(*shared_done), std::move(*reply));
    } else {
      waiting_.emplace(id, std::move(*shared_done));
    }
  };
  if (const Status admitted = admit({std::move(task)}); !admitted) {
    (*shared_done)(admitted.error());
  }
  return id;
}

void ThreadedBroker::cancel_claim(ClaimId id) {
  // When the server stops or is overloaded the claim ends by itself or by its timeout.
  (void)admit({[this, id](Timestamp) { core_->engine().cancel_claim(id); }}).has_value();
}

void ThreadedBroker::ack(std::vector<AckItem> items, Done<ItemResults<Acked>> done) {
  post<ItemResults<Acked>>(std::move(done), 0, [this, items = std::move(items)](Timestamp now) {
    return core_->engine().ack(items, now);
  });
}

void ThreadedBroker::fail(std::vector<FailItem> items, Done<ItemResults<Failed>> done) {
  std::size_t bytes = 0;
  for (const FailItem& item : items) bytes += item.error.size();
  post_waiting<ItemResults<Failed>>(std::move(done), bytes, waiting_fails_,
                                    [this, items = std::move(items)](RequestId id, Timestamp now) {
                                      return core_->engine().fail(id, items, now);
                                    });
}

void ThreadedBroker::release(std::vector<ReleaseItem> items, Done<ItemResults<Released>> done) {
  post<ItemResults<Released>>(std::move(done), 0, [this, items = std::move(items)](Timestamp now) {
    return core_->engine().release(items, now);
  });
}

void ThreadedBroker::extend(std::vector<ExtendItem> items, Done<ItemResults<Extended>> done) {
  post<ItemResults<Extended>>(std::move(done), 0, [this, items = std::move(items)](Timestamp now) {
    return core_->engine().extend(items, now);
  });
}

void ThreadedBroker::release_own(Done<std::size_t> done) {
  post<std::size_t>(std::move(done), 0, [this](Timestamp now) {
    return Result<std::size_t>(core_->engine().release_own(now));
  });
}

void ThreadedBroker::pause_queue(QueueName name, bool paused, Done<QueueStats> done) {
  post<QueueStats>(std::move(done), 0, [this, name = std::move(name), paused](Timestamp now) {
    return core_->engine().pause_queue(name, paused, now);
  });
}

void ThreadedBroker::delete_queue(QueueName name, std::string asked_by, Done<QueueStats> done) {
  Done<QueueStats> then_reclaim = [this, done = std::move(done)](Result<QueueStats> stats) mutable {
    if (stats) {
      housekeeper_->queue_deleted(stats->queue.number);
      reclaim_later(stats->queue.number);
    }
    done(std::move(stats));
  };
  post<QueueStats>(std::move(then_reclaim), 0,
                   [this, name = std::move(name), by = std::move(asked_by)](Timestamp now) {
                     return core_->engine().delete_queue(name, by, now);
                   });
}

void ThreadedBroker::queue_stats(QueueName name, Done<QueueStats> done) {
  post<QueueStats>(std::move(done), 0, [this, name = std::move(name)](Timestamp now) {
    return core_->engine().queue_stats(name, now);
  });
}

void ThreadedBroker::list_queues(std::string ns, Done<std::vector<QueueStats>> done) {
  post<std::vector<QueueStats>>(std::move(done), 0, [this, ns = std::move(ns)](Timestamp now) {
    return core_->engine().list_queues(ns, now);
  });
}

// --- Reads ----------------------------------------------------------------------------------

void ThreadedBroker::show_job(QueueName queue, std::string id, Done<JobView> done) {
  post_read<JobView>(reader_, std::move(queue), std::move(done),
                     [this, id = std::move(id)](ReadStart start, Done<JobView> reply) {
                       const JobReader reader(storage_, start.queue);
                       const auto seq = reader.resolve(id, start.seq_end);
                       if (!seq) return reply(seq.error());
                       reply(reader.show(*seq, now()));
                     });
}

void ThreadedBroker::browse(BrowseQuery query, Done<BrowsePage> done) {
  QueueName queue = query.queue;
  post_read<BrowsePage>(reader_, std::move(queue), std::move(done),
                        [this, query = std::move(query)](ReadStart start, Done<BrowsePage> reply) {
                          reply(JobReader(storage_, start.queue).browse(query, now()));
                        });
}

void ThreadedBroker::drop_job(QueueName queue, std::string id, std::string asked_by,
                              Done<DroppedJob> done) {
  QueueName name = queue;
  post_read<DroppedJob>(
      reader_, std::move(queue), std::move(done),
      [this, name = std::move(name), id = std::move(id), by = std::move(asked_by)](
          ReadStart start, Done<DroppedJob> reply) {
        const auto seq = JobReader(storage_, start.queue).resolve(id, start.seq_end);
        if (!seq) return reply(seq.error());
        post<DroppedJob>(std::move(reply), 0, [this, name, by, seq = *seq](Timestamp at) {
          return core_->engine().drop(name, seq, by, at);
        });
      });
}

// --- The engine's thread --------------------------------------------------------------------

void ThreadedBroker::run_engine() {
  name_this_thread("engine");
  take_hook_work(last_now_);  // what the recovery found, before anybody asks
  while (true) {
    std::vector<Queued> tasks = wait_for_tasks();
    {
      const std::lock_guard lock(mutex_);
      if (fatal_) return;  // nobody is answered any more
      core_->settled(settled_batch_);
      if (stopping_ && tasks.empty() && inbox_.empty()) break;
    }
    apply(std::move(tasks));
    submit_open_batch(Commits::here_if_alone);
    core_->encode_ahead();  // what is still open waits for the committer
  }
  finish();
}

// Leaves the engine and sleeps until there is something to do: a command, a timer, or a commit that
// ended while the next batch had gathered. A full batch takes nothing more until it can be handed
// on.
std::vector<ThreadedBroker::Queued> ThreadedBroker::wait_for_tasks() {
  std::unique_lock lock(mutex_);
  leave_engine();
  while (!engine_is_wanted()) {
    // Whoever has it wakes this thread if it has to be sooner.
    engine_sleeps_until_ = engine_.taken ? kNever : engine_.next_wake;
    if (engine_sleeps_until_ == kNever) {
      wake_.wait(lock);
      continue;
    }
    const Duration pause = engine_sleeps_until_ - clock_.now();
    if (pause <= Duration::zero()) break;
    // Capped, so that no duration overflows the system's clock; waking up early is harmless.
    wake_.wait_for(lock, std::min<Duration>(pause, std::chrono::hours(1)));
  }
  engine_.taken = true;
  if (engine_.batch_is_full) return {};
  return take_inbox();
}

// Under mutex_, by whoever has it.
void ThreadedBroker::leave_engine() {
  const bool full = open_batch_is_full();
  engine_ = {.taken = false,
             .batch_is_full = full,
             .has_open_work = has_open_work(),
             .open_work_is_much = open_work_is_much(),
             .next_wake = full ? kNever : core_->engine().next_wake()};
}

// Under mutex_: by its thread, without waiting for the time.
bool ThreadedBroker::engine_is_wanted() const {
  return !engine_.taken &&
         (fatal_ || stopping_ || (engine_.has_open_work && can_submit(engine_.open_work_is_much)) ||
          (!engine_.batch_is_full && !inbox_.empty()));
}

// Under mutex_.
bool ThreadedBroker::inbox_is_little() const {
  return inbox_.size() <= kCommandsAttendedTo && inbox_bytes_ <= kBytesAttendedTo;
}

// Under mutex_.
bool ThreadedBroker::inbox_is_much() const {
  return inbox_.size() > kCommandsAttendedTo || inbox_bytes_ > kMuchInLineBytes;
}

// Under mutex_.
std::vector<ThreadedBroker::Queued> ThreadedBroker::take_inbox() {
  inbox_bytes_ = 0;
  return std::exchange(inbox_, {});
}

void ThreadedBroker::attend() {
  std::optional<std::vector<Queued>> tasks;
  {
    const std::lock_guard lock(mutex_);
    // Whoever has the engine looks at the inbox before it leaves.
    if (inbox_.empty() || engine_.taken) return;
    tasks = take_engine_for_little();
  }
  if (!tasks) return wake_.notify_one();
  serve(*std::move(tasks), Commits::here_if_alone);
}

// The committer's thread goes on with what has gathered meanwhile: the engine's thread need not
// wake up for that.
void ThreadedBroker::on_committed(std::uint64_t batch) {
  std::optional<std::vector<Queued>> tasks;
  bool wanted = false;
  {
    const std::lock_guard lock(mutex_);
    settled_batch_ = batch;
    --batches_under_way_;
    wanted = engine_is_wanted();
    if (wanted) tasks = take_engine_for_little();
    wanted |= stopping_;
  }
  if (tasks) return serve(*std::move(tasks), Commits::by_committer);
  if (wanted) wake_.notify_one();
}

// Under mutex_. None: that is for the engine's thread.
std::optional<std::vector<ThreadedBroker::Queued>> ThreadedBroker::take_engine_for_little() {
  if (fatal_ || stopping_ || engine_.batch_is_full || !inbox_is_little()) return std::nullopt;
  engine_.taken = true;
  core_->settled(settled_batch_);
  return take_inbox();
}

void ThreadedBroker::serve(std::vector<Queued> tasks, Commits commits) {
  apply(std::move(tasks));
  submit_open_batch(commits);
  const std::lock_guard lock(mutex_);
  leave_engine();
  if (engine_is_wanted() || engine_.next_wake < engine_sleeps_until_) wake_.notify_one();
}

void ThreadedBroker::apply(std::vector<Queued> tasks) {
  Engine& engine = core_->engine();
  const Timestamp now = last_now_ = std::max(last_now_, clock_.now());
  engine.set_disk_low(disk_low());
  if (engine.next_wake() <= now && !open_batch_is_full()) engine.tick(now);
  for (Queued& queued : tasks) queued.task(now);
  open_commands_ += tasks.size();
  take_hook_work(now);
  take_answers(now);
  tell_sessions();
  sweep_keys_if_due(now);
}

void ThreadedBroker::take_answers(Timestamp now) {
  Engine& engine = core_->engine();
  // A session that goes on may have further claims answered, its own too.
  for (auto answers = engine.take_answers(); !answers.empty(); answers = engine.take_answers()) {
    for (Engine::ClaimAnswer& answer : answers) {
      if (sessions_->take(answer, now)) continue;
      const auto found = waiting_.find(answer.id);
      if (found == waiting_.end()) {
        give_back(answer.reply, now);
        continue;
      }
      reply_with_batch<ClaimReply>(std::move(found->second), std::move(answer.reply));
      waiting_.erase(found);
    }
  }
  for (Engine::PushAnswer& answer : engine.take_push_answers()) {
    if (sessions_->take(answer, now)) continue;
    answer_waiting<PushReply>(waiting_pushes_, answer.id, std::move(answer.reply));
  }
  for (Engine::FailAnswer& answer : engine.take_fail_answers()) {
    if (sessions_->take(answer, now)) continue;
    answer_waiting<ItemResults<Failed>>(waiting_fails_, answer.id, std::move(answer.results));
  }
}

// Of a claim that nobody waits for any more.
void ThreadedBroker::give_back(const Result<ClaimReply>& reply, Timestamp now) {
  if (!reply || reply->jobs.empty()) return;
  std::vector<ReleaseItem> items;
  for (const ClaimedJob& job : reply->jobs) {
    items.push_back({.token = job.token, .undelivered = true});
  }
  core_->engine().release(items, now);
}

bool ThreadedBroker::open_batch_is_full() const {
  return core_->ledger().open_changes().payload_bytes >= kOpenBytesMax ||
         open_commands_ >= kOpenCommandsMax;
}

bool ThreadedBroker::has_open_work() const {
  return core_->has_open_changes() || !open_replies_.empty();
}

// Under mutex_. A second batch goes beside the one that is being written only if that does not make
// many small ones out of few large ones.
bool ThreadedBroker::can_submit(bool is_much) const {
  if (batches_under_way_ == 0) return true;
  return is_much && batches_under_way_ < Committer::batches_at_once(options_.durability);
}

bool ThreadedBroker::open_work_is_much() const { return open_commands_ >= submitted_commands_; }

void ThreadedBroker::submit_open_batch(Commits commits) {
  bool alone = false;
  {
    const std::lock_guard lock(mutex_);
    alone = commits == Commits::here_if_alone && inbox_.empty();
    engine_metrics_.cache_bytes = core_->ledger().cached_bytes();
    engine_metrics_.cache_hits = core_->ledger().hits();
    engine_metrics_.cache_misses = core_->ledger().misses();
    if (!has_open_work()) open_commands_ = 0;  // what only waits is in no batch
    if (!has_open_work() || !can_submit(open_work_is_much())) return;
    alone = alone && batches_under_way_ == 0;
    ++batches_under_way_;
    // Told like a reply: when they can be found in storage.
    if (core_->ledger().open_changes().has_webhooks && told_webhooks_) {
      open_replies_.emplace_back(told_webhooks_);
    }
  }
  const bool here = alone && open_commands_ <= kCommandsCommittedHere &&
                    core_->ledger().open_changes().payload_bytes <= kBytesCommittedHere;
  submitted_commands_ = open_commands_;
  Committer::Work work{.batch = core_->seal(last_now_),
                       .replies = std::exchange(open_replies_, {}),
                       .commands = std::exchange(open_commands_, 0)};
  const auto done = here ? committer_.commit_here(work) : Committer::Here::busy;
  if (done == Committer::Here::busy) return committer_.submit(std::move(work));
  if (done == Committer::Here::failed) return;  // on_fatal has been called
  const std::lock_guard lock(mutex_);
  settled_batch_ = work.batch.number;
  --batches_under_way_;
}

// The last batch: waiting claims are answered, what was accepted is committed.
void ThreadedBroker::finish() {
  core_->engine().cancel_all_claims();
  core_->engine().give_up_hook_calls({Errc::shutting_down, "the server is stopping"});
  take_answers(last_now_);
  tell_sessions();
  while (true) {
    submit_open_batch(Commits::by_committer);
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return batches_under_way_ == 0 || fatal_; });
    if (fatal_ || !has_open_work()) return;
  }
}

// --- Housekeeping ---------------------------------------------------------------------------

void ThreadedBroker::reclaim_later(QueueNumber queue) {
  using storage::Keyspace;
  (void)maintenance_.post([this, queue] {
    for (const Keyspace keyspace : storage::kQueueKeyspaces) {
      if (interrupted_) return;
      // What fails here is space, not data: compaction gets to it in time.
      (void)storage_.reclaim(keyspace, storage::queue_begin(queue), storage::queue_end(queue))
          .has_value();
    }
  });
}

void ThreadedBroker::sweep_keys_if_due(Timestamp now) {
  if (now < next_key_sweep_) return;
  next_key_sweep_ = now + kKeySweepInterval;
  (void)maintenance_.post([this] { sweep_keys(); });
}

// Finds idempotency keys that are over or damaged and has the engine forget them, a step at a time.
void ThreadedBroker::sweep_keys() {
  std::vector<Engine::StoredKey> over;
  const auto forget = [&] {
    (void)admit({[this, keys = std::exchange(over, {})](Timestamp now) {
      core_->engine().forget_keys(keys, now);
    }}).has_value();
  };
  const Timestamp time = now();
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto parts = storage::parse_idempotency_key(key);
    const auto entry = storage::decode_key_entry(value);
    if (parts && (!entry || entry->expires_at <= time)) {
      over.push_back({parts->queue, std::string(parts->key)});
    }
    if (over.size() >= kKeysPerSweepStep) forget();
    return !interrupted_;
  };
  (void)storage_.scan(storage::Keyspace::keys, {}, {}, visit).has_value();
  if (!over.empty()) forget();
}

// What is acknowledged has been committed, and a backup has all that is committed: there is no need
// to wait in the engine's line.
void ThreadedBroker::backup(BackupCommand command, Done<BackupReply> done) {
  if (backup_running_.exchange(true)) {
    return done(Error{Errc::backup_running, "another backup is being written; try again later"});
  }
  auto shared_done = std::make_shared<Done<BackupReply>>(std::move(done));
  const bool posted = maintenance_.post([this, shared_done, command = std::move(command)] {
    const auto reply = write_backup(command);
    backup_running_ = false;
    if (options_.on_backup) options_.on_backup(command, reply);
    (*shared_done)(reply);
  });
  if (posted) return;
  backup_running_ = false;
  (*shared_done)(Error{Errc::shutting_down, "the server is stopping"});
}

Result<BackupReply> ThreadedBroker::write_backup(const BackupCommand& command) {
  const auto began = std::chrono::steady_clock::now();
  const auto bytes = storage_.backup(command.directory);
  if (!bytes) return bytes.error();
  return BackupReply{
      .directory = command.directory,
      .bytes = *bytes,
      .took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began)};
}

BrokerMetrics ThreadedBroker::metrics() const {
  BrokerMetrics metrics;
  {
    const std::lock_guard lock(mutex_);
    metrics = engine_metrics_;
    metrics.queued_commands = inbox_.size();
  }
  committer_.add_metrics(metrics);
  metrics.durability = durability_mode_name(options_.durability);
  metrics.storage_kind = storage_.kind();
  metrics.storage_bytes = storage_.disk_bytes();
  metrics.events_published = events_.published();
  metrics.free_disk_bytes = disk_guard_.free_bytes();
  metrics.disk_low = disk_low();
  metrics.operations_running = housekeeper_->running();
  const hooks::HookRunnerMetrics hosts = hooks_->metrics();
  metrics.hook_hosts = hosts.hosts;
  metrics.hook_hosts_started = hosts.started;
  metrics.hook_hosts_killed = hosts.killed;
  metrics.hook_hosts_lost = hosts.lost;
  return metrics;
}

}  // namespace reprise
