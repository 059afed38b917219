#include "load_run.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "load_error.h"

namespace reprise::bench {

LoadRun::LoadRun(const LoadOptions& options, LoadPhase& phase, Measurement& measurement)
    : phase_(phase),
      measurement_(measurement),
      warmup_(from_seconds(options.warmup_seconds)),
      length_(from_seconds(options.seconds)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  for (std::size_t i = 0; i < options.connections; i++) {
    connections_.push_back(std::make_unique<HttpConnection>(options.address, i));
    connections_.back()->join(epoll_);
  }
}

LoadRun::~LoadRun() { close(epoll_); }

void LoadRun::run() {
  stage_ends_ = Clock::now() + warmup_;
  advance(Clock::now());
  for (const auto& connection : connections_) phase_.begin(*connection, Clock::now());
  while (true) {
    const TimePoint now = Clock::now();
    const TimePoint stage_ends = advance(now);
    if (stage_ == Stage::settling && phase_.settled()) return;
    wait(std::min(stage_ends, phase_.tick(now)));
  }
}

TimePoint LoadRun::advance(TimePoint now) {
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

void LoadRun::wait(TimePoint until) {
  const Nanoseconds left = std::max(until - Clock::now(), Nanoseconds(0));
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                         .tv_nsec = left.count() % 1'000'000'000};
  std::array<epoll_event, 64> events{};
  const int count =
      epoll_pwait2(epoll_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (count < 0 && errno != EINTR) throw LoadError("epoll_pwait2 failed");
  for (int i = 0; i < count; i++) {
    const auto& event = events[static_cast<std::size_t>(i)];
    serve(*static_cast<HttpConnection*>(event.data.ptr), event.events, Clock::now());
  }
}

void LoadRun::serve(HttpConnection& connection, unsigned events, TimePoint now) {
  if ((events & EPOLLOUT) != 0) connection.flush();
  if ((events & ~unsigned{EPOLLOUT}) != 0) {
    if (const auto reply = connection.receive()) {
      measurement_.add_reply();
      phase_.on_reply(connection, *reply, now);
    }
  }
}

}  // namespace reprise::bench
