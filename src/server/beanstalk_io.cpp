#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "base/random.h"
#include "base/thread_name.h"
#include "server/beanstalk_connection_impl.h"
#include "server/beanstalk_io_impl.h"

namespace reprise::server {
namespace {

using std::chrono::milliseconds;

// Large enough for all that a client with a wide window sends ahead: each read is a submit.
constexpr std::size_t kReadBytes = 256 << 10;
constexpr std::int64_t kMaxBytesUnderWay = 256LL << 20;
constexpr std::int64_t kMaxPartialBytes = 256LL << 20;
constexpr milliseconds kTryAgainAfter{2};
constexpr std::size_t kBytesSentByBroker = 32 << 10;
constexpr milliseconds kTickInterval{100};

std::string random_id() {
  SystemRandom random;
  return fmt::format("{:016x}", random.next_u64());
}

// Whoever waits for nothing but that its commands are done: the session ends then.
class LastReply final : public session::Sink {
 public:
  explicit LastReply(std::function<void()> done) : done_(std::move(done)) {}
  void deliver(std::vector<session::Reply> /*replies*/) override { done_(); }

 private:
  const std::function<void()> done_;
};

// One writer, so that no locked instruction is needed.
void increment(std::atomic<std::uint64_t>& counter, std::int64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(by),
                std::memory_order_relaxed);
}

}  // namespace

BeanstalkIo::BeanstalkIo(Broker& broker, BeanstalkServerOptions options)
    : broker_(broker),
      options_(std::move(options)),
      id_(random_id()),
      started_at_(broker.now()),
      keep_running_(context_.get_executor()),
      mailbox_([this] {
        boost::asio::post(context_, [this] {
          const auto turn = this->turn();
          read_mail();
        });
      }),
      retry_timer_(context_),
      tick_timer_(context_),
      read_buffer_(kReadBytes) {}

void BeanstalkIo::start() {
  make_default_tube();
  learn_earlier_counts();
  thread_ = std::thread([this] {
    name_this_thread("beanstalk");
    context_.run();
  });
}

// It is always there, as in beanstalkd. A broker that refuses will refuse more than this.
void BeanstalkIo::make_default_tube() {
  auto session = std::make_shared<SessionId>();
  SessionOptions options;
  options.worker = "beanstalk";
  options.sink = std::make_shared<LastReply>([self = weak_from_this(), session] {
    const auto io = self.lock();
    if (!io) return;
    // Not from here: the broker is at it.
    io->mailbox().post([io = io.get(), session] { io->broker_.close_session(*session); });
  });
  *session = broker_.open_session(std::move(options));
  std::vector<session::Command> commands;
  commands.emplace_back(session::UseQueue{std::string(kDefaultTube)});
  if (const Status taken = broker_.submit(*session, commands); !taken) {
    broker_.close_session(*session);
  }
  broker_.attend();
}

// Queues count since they were made, `stats` since this start.
void BeanstalkIo::learn_earlier_counts() {
  broker_.list_queues(std::string(kDefaultNamespace),
                      [self = weak_from_this()](const Result<std::vector<QueueStats>>& queues) {
                        const auto io = self.lock();
                        if (!io || !queues) return;
                        std::uint64_t jobs = 0;
                        std::uint64_t timeouts = 0;
                        for (const QueueStats& stats : *queues) {
                          jobs += stats.totals.pushed;
                          timeouts += stats.totals.lease_expired;
                        }
                        io->mailbox().post([io = io.get(), jobs, timeouts] {
                          io->earlier_jobs_ = jobs;
                          io->earlier_timeouts_ = timeouts;
                        });
                      });
}

void BeanstalkIo::begin_drain() {
  boost::asio::post(context_, [this] {
    const auto turn = this->turn();
    draining_ = true;
    // First all of them: what one gives back when it closes is not for another that waits.
    for (const auto& connection : all_connections()) connection->end_waits();
    for (const auto& connection : all_connections()) connection->drain();
  });
}

void BeanstalkIo::stop() {
  boost::asio::post(context_, [this] {
    const auto turn = this->turn();
    draining_ = true;
    for (const auto& connection : all_connections()) connection->close();
    retrying_.clear();
    retry_timer_.cancel();
    tick_timer_.cancel();
    keep_running_.reset();
  });
  thread_.join();
  const auto turn = this->turn();
  mailbox_.close();
}

void BeanstalkIo::leave_mail(std::size_t bytes, Mailbox::Letter letter) {
  bytes_left_ += bytes;
  mailbox_.leave(std::move(letter));
}

// To wake its thread takes as long as sending a few replies. More of them are for that thread:
// whoever commits has the next batch to write.
void BeanstalkIo::mail_is_complete() {
  const std::size_t bytes = bytes_left_.exchange(0);
  if (bytes == 0) return;  // it has been told
  if (bytes <= kBytesSentByBroker) {
    if (const std::unique_lock turn(turn_, std::try_to_lock); turn) return read_mail();
  }
  mailbox_.wake();
}

BeanstalkStats BeanstalkIo::stats() const {
  BeanstalkStats stats;
  stats.connections = connection_count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kBeanstalkVerbCount; ++i) {
    stats.commands[i] = commands_[i].load(std::memory_order_relaxed);
  }
  return stats;
}

void BeanstalkIo::adopt(boost::asio::ip::tcp::socket socket) {
  const auto turn = this->turn();
  // The protocol has no word for "too many": the socket closes itself.
  if (draining_ || connections_.size() >= options_.max_connections) return;
  auto connection = std::make_shared<BeanstalkConnection>(shared_from_this(), std::move(socket));
  connections_.emplace(connection.get(), connection);
  gate_.enter();
  increment(connection_count_);
  ++total_connections_;
  connection->start();
}

void BeanstalkIo::forget(const BeanstalkConnection& connection) {
  increment(connection_count_, -1);
  connections_.erase(&connection);
  gate_.leave();
}

BeanstalkLimits BeanstalkIo::limits() const {
  const Limits& limits = broker_.limits();
  return {.max_payload_bytes = limits.max_payload_bytes, .max_error_bytes = limits.max_error_bytes};
}

std::vector<std::shared_ptr<BeanstalkConnection>> BeanstalkIo::all_connections() const {
  std::vector<std::shared_ptr<BeanstalkConnection>> all;
  for (const auto& [key, connection] : connections_) all.push_back(connection);
  return all;
}

void BeanstalkIo::read_mail() {
  const bool wakes_later = std::exchange(wakes_soon_, true);
  mailbox_.drain();
  let_awake_proceed();
  wakes_soon_ = wakes_later;
}

void BeanstalkIo::wake(std::shared_ptr<BeanstalkConnection> connection) {
  if (std::exchange(connection->is_awake, true)) return;
  awake_.push_back(std::move(connection));
  if (std::exchange(wakes_soon_, true)) return;
  boost::asio::post(context_, [this] {
    const auto turn = this->turn();
    wakes_soon_ = false;
    let_awake_proceed();
  });
}

void BeanstalkIo::attend_soon() {
  if (std::exchange(attends_soon_, true)) return;
  boost::asio::post(context_, [this] {
    {
      const auto turn = this->turn();
      attends_soon_ = false;
    }
    broker_.attend();
  });
}

void BeanstalkIo::let_awake_proceed() {
  // By index: proceeding may wake others.
  for (std::size_t i = 0; i < awake_.size(); ++i) {
    const auto connection = awake_[i];
    connection->is_awake = false;
    connection->proceed();
  }
  awake_.clear();
}

void BeanstalkIo::try_later(std::shared_ptr<BeanstalkConnection> connection) {
  retrying_.push_back(std::move(connection));
  if (retrying_.size() > 1) return;
  retry_timer_.expires_after(kTryAgainAfter);
  retry_timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    const auto turn = this->turn();
    submit_again();
  });
}

void BeanstalkIo::submit_again() {
  const auto all = std::exchange(retrying_, {});
  for (const auto& connection : all) connection->submit_again();
}

void BeanstalkIo::want_ticks() {
  if (!std::exchange(ticking_, true)) schedule_tick();
}

void BeanstalkIo::schedule_tick() {
  tick_timer_.expires_after(kTickInterval);
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    const auto turn = this->turn();
    if (!error && keep_running_.owns_work()) tick();
  });
}

void BeanstalkIo::tick() {
  bool wanted = false;
  for (const auto& connection : all_connections()) wanted |= connection->on_tick();
  ticking_ = wanted;
  if (wanted) schedule_tick();
}

void BeanstalkIo::add_bytes_under_way(std::int64_t change) {
  const bool had_too_many = has_too_many_bytes();
  bytes_under_way_ += change;
  if (!had_too_many || has_too_many_bytes()) return;
  for (const auto& connection : all_connections()) wake(connection);
}

bool BeanstalkIo::has_too_many_bytes() const { return bytes_under_way_ > kMaxBytesUnderWay; }

bool BeanstalkIo::has_too_many_partial_bytes() const { return partial_bytes_ > kMaxPartialBytes; }

void BeanstalkIo::count(BeanstalkVerb verb) {
  increment(commands_[static_cast<std::size_t>(verb)]);
}

BeanstalkCensus BeanstalkIo::census() const {
  BeanstalkCensus census;
  census.stats = stats();
  for (const auto& [key, connection] : connections_) {
    const BeanstalkDialogue& dialogue = connection->dialogue();
    if (dialogue.is_producer()) ++census.producers;
    if (dialogue.is_worker()) ++census.workers;
    if (dialogue.waits_in_reserve()) ++census.waiting;
  }
  census.total_connections = total_connections_;
  census.max_job_bytes = broker_.limits().max_payload_bytes;
  census.earlier_jobs = earlier_jobs_;
  census.earlier_timeouts = earlier_timeouts_;
  census.uptime = broker_.now() - started_at_;
  census.draining = draining_;
  census.id = id_;
  return census;
}

BeanstalkTubeCensus BeanstalkIo::tube_census(const std::string& tube) const {
  BeanstalkTubeCensus census;
  for (const auto& [key, connection] : connections_) {
    const BeanstalkDialogue& dialogue = connection->dialogue();
    const auto& watched = dialogue.watched();
    if (dialogue.used() == tube) ++census.using_it;
    if (std::ranges::find(watched, tube) != watched.end()) ++census.watching;
    if (dialogue.waits_for(tube)) ++census.waiting;
  }
  if (const auto found = pauses_.find(tube); found != pauses_.end()) census.pauses = found->second;
  return census;
}

}  // namespace reprise::server
