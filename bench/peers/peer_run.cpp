#include "peers/peer_run.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

// Tells the phase which connection a reply came on.
class RepliesOf final : public PeerReplies {
 public:
  RepliesOf(PeerPhase& phase, PeerConnection& connection, TimePoint now)
      : phase_(phase), connection_(connection), now_(now) {}

  void on_pushed() override { phase_.on_pushed(connection_, now_); }
  void on_claimed(std::string_view job, std::string_view body) override {
    phase_.on_claimed(connection_, job, body, now_);
  }
  void on_none(std::size_t jobs) override { phase_.on_none(connection_, jobs, now_); }
  void on_ended() override { phase_.on_ended(connection_, now_); }
  void on_kicked(std::uint64_t jobs) override { phase_.on_kicked(connection_, jobs, now_); }

 private:
  PeerPhase& phase_;
  PeerConnection& connection_;
  TimePoint now_;
};

}  // namespace

PeerRun::PeerRun(const PeerOptions& options, PeerPhase& phase, Measurement& measurement)
    : phase_(phase),
      measurement_(measurement),
      warmup_(from_seconds(options.warmup_seconds)),
      length_(from_seconds(options.seconds)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (std::size_t i = 0; i < phase.connections(); i++) {
    connections_.push_back(std::make_unique<PeerConnection>(
        options.address, i, make_protocol(options.protocol, options.queue, i)));
    connections_.back()->join(epoll_);
    phase_.join(*connections_.back());
  }
}

PeerRun::~PeerRun() { close(epoll_); }

void PeerRun::run() {
  stage_ends_ = Clock::now() + warmup_;
  advance(Clock::now());
  for (const auto& connection : connections_) {
    phase_.refill(*connection, Clock::now());
    connection->flush();
  }
  while (true) {
    const TimePoint now = Clock::now();
    const TimePoint stage_ends = advance(now);
    if (stage_ == Stage::settling && phase_.settled()) return;
    wait(std::min(stage_ends, phase_.tick(now)));
  }
}

TimePoint PeerRun::advance(TimePoint now) {
  if (stage_ == Stage::warming_up && phase_.done()) {
    throw LoadError("all jobs were done while warming up: more --jobs, or less --warmup");
  }
  if (stage_ == Stage::warming_up && now >= stage_ends_) {
    stage_ = Stage::measuring;
    stage_ends_ = now + length_;
    measurement_.open(now);
  }
  if (stage_ == Stage::measuring && (now >= stage_ends_ || phase_.done())) {
    stage_ = Stage::settling;
    stage_ends_ = now + kSettleSeconds;
    measurement_.close(now);
    phase_.stop();
  }
  if (stage_ == Stage::settling && now >= stage_ends_) {
    throw LoadError("jobs under way were not answered, or never came back");
  }
  return stage_ends_;
}

void PeerRun::wait(TimePoint until) {
  const Nanoseconds left = std::max(until - Clock::now(), Nanoseconds(0));
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                         .tv_nsec = left.count() % 1'000'000'000};
  std::array<epoll_event, 64> events{};
  const int count =
      epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (count < 0 && errno != EINTR) throw LoadError("epoll_pwait2 failed");
  for (int i = 0; i < count; i++) {
    const auto& event = events[static_cast<std::size_t>(i)];
    serve(*static_cast<PeerConnection*>(event.data.ptr), event.events);
  }
}

void PeerRun::serve(PeerConnection& connection, unsigned events) {
  if ((events & EPOLLOUT) != 0) connection.flush();
  if ((events & ~unsigned{EPOLLOUT}) == 0) return;
  const TimePoint now = Clock::now();
  RepliesOf replies(phase_, connection, now);
  connection.receive(replies);
  phase_.refill(connection, now);
  connection.flush();
}

}  // namespace reprise::bench::peers
