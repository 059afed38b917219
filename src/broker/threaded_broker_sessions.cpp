// Sessions on the engine's thread: their commands come in, their replies leave with the batch.
#include <utility>

#include "broker/threaded_broker_impl.h"

namespace reprise {
namespace {

// What a job costs beside its payload, whatever is done with it.
constexpr std::size_t kBytesForJob = 256;

std::size_t size_of(const session::Put& put) {
  std::size_t size = put.jobs.size() * kBytesForJob;
  for (const Result<NewJob>& job : put.jobs) size += job ? job->payload.size() : 0;
  return size;
}
std::size_t size_of(const session::Reserve& reserve) { return reserve.count * kBytesForJob; }
std::size_t size_of(const session::Delete& command) { return command.jobs.size() * kBytesForJob; }
std::size_t size_of(const session::Release& release) { return release.items.size() * kBytesForJob; }
std::size_t size_of(const session::Bury& bury) { return bury.items.size() * kBytesForJob; }
template <class Command>
std::size_t size_of(const Command&) {
  return kBytesForJob;
}

std::size_t size_of(const std::vector<session::Command>& commands) {
  std::size_t size = 0;
  for (const session::Command& command : commands) {
    size += std::visit([](const auto& one) { return size_of(one); }, command);
  }
  return size;
}

}  // namespace

Sessions::Host ThreadedBroker::session_host() {
  return {
      .next_claim = [this] { return next_claim_++; },
      .next_request = [this] { return next_request_++; },
      .find_dead =
          [this](QueueNumber queue, std::optional<storage::EndingKey> after, std::size_t most,
                 Sessions::Host::DeadFound found) {
            find_dead(queue, after, most, std::move(found));
          },
      .later = [this](absl::AnyInvocable<void(Timestamp)> task) { admit_own(std::move(task)); }};
}

SessionId ThreadedBroker::open_session(SessionOptions options) {
  const SessionId id = next_session_++;
  admit_own([this, id, options = std::move(options)](Timestamp) mutable {
    sessions_->open(id, std::move(options));
  });
  return id;
}

Status ThreadedBroker::submit(SessionId session, std::vector<session::Command>& commands) {
  const std::size_t bytes = size_of(commands);
  // Shared, because a refused task is destroyed with all it holds and the caller keeps its
  // commands.
  auto shared = std::make_shared<std::vector<session::Command>>(std::move(commands));
  Status admitted = admit({[this, session, shared](Timestamp now) {
                             sessions_->submit(session, std::move(*shared), now);
                           },
                           bytes},
                          Wake::later);
  if (!admitted) commands = std::move(*shared);
  return admitted;
}

void ThreadedBroker::end_waits(SessionId session) {
  admit_own([this, session](Timestamp) { sessions_->end_waits(session); });
}

void ThreadedBroker::close_session(SessionId session) {
  admit_own([this, session](Timestamp now) { sessions_->close(session, now); });
}

void ThreadedBroker::tell_sessions() {
  std::vector<Sessions::Told> all = sessions_->take_replies();
  if (all.empty()) return;
  open_replies_.emplace_back([all = std::move(all)]() mutable {
    for (Sessions::Told& told : all) told.sink->deliver(std::move(told.replies));
    for (const Sessions::Told& told : all) told.sink->delivered();
  });
}

// What stands behind `after` is in storage. The rest waits for the batch, as a reply does.
void ThreadedBroker::find_dead(QueueNumber queue, std::optional<storage::EndingKey> after,
                               std::size_t most, Sessions::Host::DeadFound found) {
  auto shared = std::make_shared<Sessions::Host::DeadFound>(std::move(found));
  const auto come_back = [this, shared](Result<std::vector<Ended>> dead) {
    admit_own([this, shared, dead = std::move(dead)](Timestamp now) mutable {
      (*shared)(std::move(dead), now);
    });
  };
  auto look = [this, queue, after, most, come_back] {
    const bool posted = reader_.post([this, queue, after, most, come_back] {
      const auto snapshot = storage_.snapshot();
      const Endings dead(*snapshot, queue, storage::EndKind::dead);
      storage::EndingKey from = after ? *after : dead.from(Timestamp{});
      if (after) ++from.seq;
      come_back(dead.oldest(from, dead.end(), most));
    });
    if (!posted) come_back(Error{Errc::overloaded, "too many reads are waiting"});
  };
  if (after) return look();
  open_replies_.emplace_back(std::move(look));
}

}  // namespace reprise
