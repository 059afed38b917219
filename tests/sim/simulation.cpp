#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/auditor.h"
#include "sim/describe.h"
#include "sim/model.h"
#include "sim/server.h"
#include "sim/violation.h"
#include "sim/workload.h"

namespace reprise::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kSteps = 250;
constexpr Timestamp kStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        dice_(options.seed),
        workload_(dice_),
        server_({.disk = options.disk,
                 .sabotage = options.sabotage,
                 .cache_bytes = workload_.cache_bytes(),
                 .seed = dice_.seed()}) {}

  void run() {
    for (int i = 0; i < kSteps; ++i) {
      step(workload_.next_step());
      check();
    }
    drain();
  }

  std::map<std::string, std::uint64_t> take_happened() { return std::move(happened_); }

 private:
  // --- Steps.

  void step(Step step) {
    switch (step) {
      case Step::push:
        return push(workload_.push());
      case Step::claim:
        return claim(workload_.claim());
      case Step::cancel_claim:
        return cancel_claim();
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
      case Step::put_queue:
        return put_queue();
      case Step::set_retry:
        return set_retry();
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

  void push(const PushCommand& command) {
    trace("push {}", describe(command));
    const auto got = server_.engine().push(command, now_);
    compare("push", got, model_.push(command, now_));
    if (!got) return;
    const QueueNumber queue = model_.queues().at(command.queue).record.number;
    for (const auto& pushed : got->results) {
      count(!pushed             ? "push refused: " + describe_error(pushed.error())
            : pushed->duplicate ? "duplicate push"
                                : "push");
      if (!pushed || pushed->duplicate) continue;
      const JobKey job{queue, pushed->seq};
      server_.reply_when_synced([this, job] { auditor_.told_pushed(job); });
    }
  }

  void claim(const ClaimCommand& command) {
    const ClaimId id = ++last_claim_;
    trace("claim {}: {}", id, describe(command));
    const auto got = server_.engine().claim(id, command, now_);
    compare("claim", got, model_.claim(id, command, now_));
    if (got && *got) given(**got);
    count(!got ? "claim waits" : "claim answered at once");
  }

  // A claim was answered, now or later.
  void given(const ClaimReply& reply) {
    model_.learn(reply);
    auditor_.granted(reply, now_);
    for (const ClaimedJob& job : reply.jobs) {
      trace("  given {}", describe(job.token));
      tokens_.push_back(job.token);
      count(job.failures > 0 ? "retry given" : "fresh job given");
      tell_lease_when_synced(job.token.job, job.lease_deadline);
    }
  }

  void tell_lease_when_synced(JobKey job, Timestamp until) {
    server_.reply_when_synced([this, job, until, touches = auditor_.touches(job)] {
      auditor_.told_leased(job, until, touches);
    });
  }

  void cancel_claim() {
    if (last_claim_ == 0) return;
    const ClaimId id = last_claim_ - dice_.below(std::min<ClaimId>(last_claim_, 4));
    trace("cancel claim {}", id);
    server_.engine().cancel_claim(id);
    model_.cancel_claim(id);
  }

  void ack() {
    const auto make_item = [] { return AckItem{}; };
    for (const Acked& acked : use_tokens("ack", make_item, &Engine::ack, &Model::ack)) {
      server_.reply_when_synced([this, acked] { auditor_.told_acked(acked.job); });
    }
  }

  void fail() {
    use_tokens(
        "fail", [&] { return workload_.fail(); }, &Engine::fail, &Model::fail);
  }

  void release() {
    use_tokens(
        "release", [&] { return workload_.release(); }, &Engine::release, &Model::release);
  }

  void extend() {
    const auto make_item = [&] { return workload_.extend(); };
    for (const Extended& extended :
         use_tokens("extend", make_item, &Engine::extend, &Model::extend)) {
      tell_lease_when_synced(extended.job, extended.lease_deadline);
    }
  }

  // One of the calls above, for one token or several, good and bad. Returns what succeeded.
  template <class MakeItem, class Item, class Done>
  std::vector<Done> use_tokens(const char* name, const MakeItem& make_item,
                               ItemResults<Done> (Engine::*engine_call)(std::span<const Item>,
                                                                        Timestamp),
                               Result<Done> (Model::*model_call)(const Item&, Timestamp)) {
    std::vector<Item> items;
    for (std::uint64_t n = dice_.percent(70) ? 1 : 1 + dice_.below(4); n > 0; --n) {
      items.push_back(make_item());
      items.back().token = some_token();
    }
    for (const Item& item : items) {
      trace("{} {}", name, item.token ? describe(*item.token) : "no token");
      if (!item.token) continue;
      auditor_.token_used(item.token->job);
      if constexpr (std::is_same_v<Done, Acked>) auditor_.end_asked(item.token->job);
    }
    const auto got = (server_.engine().*engine_call)(items, now_);
    require(got.size() == items.size(), fmt::format("{}: a result is missing", name));
    std::vector<Done> done;
    for (std::size_t i = 0; i < items.size(); ++i) {
      compare(name, got[i], (model_.*model_call)(items[i], now_));
      count(got[i] ? name : fmt::format("{} refused: {}", name, describe_error(got[i].error())));
      if (got[i]) done.push_back(*got[i]);
    }
    return done;
  }

  Result<LeaseToken> some_token() {
    if (dice_.percent(3)) return Error{Errc::invalid_lease_token, "no token"};
    const auto live = live_tokens();
    if (!live.empty() && dice_.percent(70)) return live[dice_.below(live.size())];
    LeaseToken token{.job = {1, 1}, .nonce = dice_.seed()};
    if (!tokens_.empty()) token = tokens_[dice_.below(tokens_.size())];
    if (dice_.percent(10)) token.nonce ^= 1;
    if (dice_.percent(5)) token.job.seq += 1;
    return token;
  }

  std::vector<LeaseToken> live_tokens() const {
    std::vector<LeaseToken> live;
    for (const auto& [name, queue] : model_.queues()) {
      for (const auto& [seq, job] : queue.jobs) {
        if (job.state.status != JobStatus::active) continue;
        live.push_back({{queue.record.number, seq}, job.state.lease_nonce});
      }
    }
    return live;
  }

  void drop() {
    const QueueName name = workload_.queue_name();
    Seq seq = 1 + dice_.below(model_.next_seq());
    const auto queue = model_.queues().find(name);
    if (queue != model_.queues().end() && !queue->second.jobs.empty() && dice_.percent(80)) {
      const auto& jobs = queue->second.jobs;
      seq = std::next(jobs.begin(), static_cast<std::ptrdiff_t>(dice_.below(jobs.size())))->first;
    }
    trace("drop {} {}", describe(name), seq);
    if (queue != model_.queues().end()) auditor_.end_asked({queue->second.record.number, seq});
    const auto got = server_.engine().drop(name, seq, now_);
    compare("drop", got, model_.drop(name, seq, now_));
    if (got) count("dropped while " + std::string(status_name(got->status)));
  }

  void put_queue() {
    const QueueName name = workload_.queue_name();
    const QueueConfig config = workload_.queue_config();
    trace("put queue {}", describe(QueueRecord{.name = name, .config = config}));
    const auto got = server_.engine().put_queue({.queue = name, .config = config}, now_);
    require(got.has_value(), "put queue was refused");
    compare("put queue", Result<bool>(got->created),
            Result<bool>(model_.put_queue(name, config, now_)));
  }

  void set_retry() {
    const QueueName name = workload_.queue_name();
    const RetryPolicy retry = workload_.retry_policy();
    trace("set retry {} attempts {} cooldown {}us", describe(name), retry.attempts,
          retry.cooldown.count());
    const auto edit = [&](QueueConfig& config) {
      config.retry = retry;
      return ok();
    };
    compare("set retry", without_value(server_.engine().edit_queue(name, edit, now_)),
            model_.set_retry(name, retry));
  }

  void pause(const QueueName& name, bool paused) {
    trace("{} {}", paused ? "pause" : "resume", describe(name));
    compare("pause", without_value(server_.engine().pause_queue(name, paused, now_)),
            model_.pause_queue(name, paused, now_));
  }

  void delete_queue() {
    const QueueName name = workload_.queue_name();
    trace("delete queue {}", describe(name));
    const auto queue = model_.queues().find(name);
    if (queue != model_.queues().end()) {
      auditor_.queue_end_asked(queue->second.record.number);
      count("queue deleted");
    }
    compare("delete queue", without_value(server_.engine().delete_queue(name, now_)),
            model_.delete_queue(name));
  }

  void forget_keys() {
    std::vector<Engine::StoredKey> keys;
    for (const auto& [name, queue] : model_.queues()) {
      for (const auto& [key, entry] : queue.keys) keys.push_back({queue.record.number, key});
    }
    trace("forget keys that are over, of {}", keys.size());
    server_.engine().forget_keys(keys, now_);
    for (const auto& [queue, key] : keys) model_.forget_key(queue, key, now_);
  }

  void set_disk_low(bool low) {
    trace("disk {}", low ? "low" : "has room");
    disk_low_ = low;
    server_.engine().set_disk_low(low);
    model_.set_disk_low(low);
  }

  void let_time_pass(Duration by) {
    now_ += by;
    trace("{}us later", by.count());
    if (workload_.ticks_after_time_step()) tick();
  }

  void tick() {
    trace("tick");
    server_.engine().tick(now_);
    model_.tick(now_);
    require(server_.engine().next_wake() > now_, "a tick has left work behind");
  }

  // --- Batches.

  void seal() {
    trace("seal");
    const std::vector<Event> events = server_.seal(model_, now_);
    Model::EventCounts counts{};
    for (const Event& event : events) ++counts[static_cast<std::size_t>(event.type)];
    require(counts == model_.take_events(), "the batch has other events than it should");
    while (server_.sealed() > workload_.max_sealed()) commit(1);
    if (server_.unsettled() > workload_.max_unsettled()) server_.settle();
  }

  void commit(std::size_t batches) {
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

  void sync() {
    trace("sync");
    if (server_.sync()) return;
    count("sync failed");
    restart(Death::power_cut);
  }

  void restart(Death death) {
    Server::Survivor survivor = server_.restart(death, dice_.seed());
    trace("{}; {} commits are lost", death == Death::kill ? "killed" : "power cut",
          survivor.lost_batches);
    count(death == Death::kill ? "killed" : "power cut");
    if (survivor.lost_batches > 0) count("unsynced commits lost");
    model_ = std::move(survivor.model);
    disk_low_ = false;
    auditor_.check_nothing_is_lost(survivor.image);
    // The wall clock may have been set back meanwhile; what is stored keeps time from following.
    if (dice_.percent(30)) now_ = std::clamp(survivor.clock, kStart, now_);
    if (dice_.percent(70)) tick();
  }

  // --- Checks.

  void check() {
    check_answers();
    check_queues();
    require(server_.engine().next_wake() <= model_.next_wake(), "the engine would sleep too long");
    require(server_.engine().next_seq() == model_.next_seq(), "the next id is wrong");
  }

  void check_answers() {
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

  void check_queues() {
    const auto got = server_.engine().list_queues("", now_);
    require(got.size() == model_.queues().size(), "there are other queues than there should be");
    for (const QueueStats& stats : got) {
      const QueueName& name = stats.queue.name;
      require(model_.queues().contains(name), "queue " + describe(name) + " should not be there");
      const QueueStats expected = model_.stats_of(name, now_);
      if (!same_numbers(stats, expected))
        compare_text("stats", describe(stats), describe(expected));
    }
  }

  static bool same_numbers(const QueueStats& a, const QueueStats& b) {
    return a.queue == b.queue && a.by_status == b.by_status && a.bytes == b.bytes &&
           a.oldest_pending_age == b.oldest_pending_age && a.waiting_claims == b.waiting_claims &&
           a.totals == b.totals;
  }

  template <class T>
  void compare(std::string_view what, const T& got, const T& expected) {
    compare_text(what, describe(got), describe(expected));
  }
  void compare_text(std::string_view what, const std::string& got, const std::string& expected) {
    require(got == expected, fmt::format("{}: got\n  {}\nexpected\n  {}", what, got, expected));
  }
  template <class T>
  static Status without_value(const Result<T>& result) {
    return result ? ok() : Status(result.error());
  }

  // --- The end: given time and workers that succeed, every job ends somewhere.

  void drain() {
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
  }

  void drain_queues() {
    std::vector<QueueName> names;
    for (const auto& [name, queue] : model_.queues()) names.push_back(name);
    for (const QueueName& name : names) {
      pause(name, false);
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

  bool all_jobs_ended() const {
    return std::ranges::all_of(model_.queues(), [](const auto& queue) {
      return std::ranges::all_of(queue.second.jobs, [](const auto& job) {
        return job.second.state.status == JobStatus::dead;
      });
    });
  }

  void count_deaths(const Model::Queue& queue) {
    for (const auto& [seq, job] : queue.jobs) {
      count("dead: " + std::string(death_reason_name(job.state.death_reason)));
    }
  }

  // --- Telling.

  void count(const std::string& what) { ++happened_[what]; }

  template <class... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (!options_.trace) return;
    fmt::print("{:>14.6f}s  {}\n", std::chrono::duration<double>(now_ - kStart).count(),
               fmt::format(format, std::forward<Args>(args)...));
  }

  const SimulationOptions options_;
  Dice dice_;
  Workload workload_;
  Server server_;
  Model model_;
  Auditor auditor_;
  Timestamp now_ = kStart;
  bool disk_low_ = false;
  ClaimId last_claim_ = 0;
  std::vector<LeaseToken> tokens_;  // all that were ever given
  std::map<std::string, std::uint64_t> happened_;
};

}  // namespace

SimulationResult simulate(const SimulationOptions& options) {
  SimulationResult result;
  try {
    Simulation simulation(options);
    simulation.run();
    result.happened = simulation.take_happened();
  } catch (const std::exception& violation) {  // a Violation, or worse
    result.violation = violation.what();
  }
  return result;
}

}  // namespace reprise::sim
