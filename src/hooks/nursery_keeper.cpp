#include "hooks/nursery_keeper.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace reprise::hooks {
namespace {

constexpr std::size_t kAskedAtOnce = 32;
constexpr auto kAnswerWithin = std::chrono::seconds(5);
constexpr Steady::duration kFirstPause = std::chrono::milliseconds(20);
constexpr Steady::duration kLongestPause = std::chrono::milliseconds(200);
// A nursery that lived so long was a good one: the next need not wait.
constexpr auto kGoodLife = std::chrono::seconds(2);

}  // namespace

std::vector<NurseryKeeper::Event> NurseryKeeper::pump(Steady now) {
  std::vector<Event> events;
  if (nursery_) receive(now, events);
  if (nursery_ && !asked_.empty() && now >= asked_.front().at + kAnswerWithin) {
    lose("the nursery of hook hosts does not answer", now, events);
  }
  if (!unasked_.empty()) ask(now, events);
  return events;
}

void NurseryKeeper::receive(Steady now, std::vector<Event>& events) {
  while (true) {
    auto report = nursery_->receive();
    if (!report) return lose(report.error().detail, now, events);
    if (!*report) return;
    const NurseryReport what = (*report)->what;
    switch (what.news) {
      case NurseryNews::started:
        forget_asked(what.host);
        events.emplace_back(HostStarted{std::move(**report)});
        break;
      case NurseryNews::failed:
        forget_asked(what.host);
        events.emplace_back(HostFailed{what.host, std::strerror(what.detail)});
        break;
      case NurseryNews::ended:
        events.emplace_back(HostEnded{what.host, what.detail});
        break;
    }
  }
}

void NurseryKeeper::ask(Steady now, std::vector<Event>& events) {
  if (!nursery_ && (now < not_before_ || !start(now, events))) return;
  // No more than the socket takes for certain; the others follow when these are answered.
  while (!unasked_.empty() && asked_.size() < kAskedAtOnce) {
    asked_.push_back({.host = unasked_.front(), .at = now});
    unasked_.pop_front();
    if (auto sent = nursery_->request(asked_.back().host); !sent) {
      return lose(sent.error().detail, now, events);
    }
  }
}

bool NurseryKeeper::start(Steady now, std::vector<Event>& events) {
  auto started = NurseryLink::start(program_);
  if (!started) {
    for (const std::uint32_t host : std::exchange(unasked_, {})) {
      events.emplace_back(HostFailed{host, started.error().detail});
    }
    pause(now);
    return false;
  }
  nursery_ = std::move(*started);
  started_at_ = now;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = tag_}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, nursery_->control_fd(), &event);
  return true;
}

void NurseryKeeper::lose(const std::string& why, Steady now, std::vector<Event>& events) {
  nursery_.reset();
  for (const Asked& asked : std::exchange(asked_, {})) {
    events.emplace_back(HostFailed{asked.host, why});
  }
  events.emplace_back(NurseryLost{why});
  if (now - started_at_ >= kGoodLife) pause_ = {};
  pause(now);
}

void NurseryKeeper::pause(Steady now) {
  not_before_ = now + pause_;
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
}

void NurseryKeeper::forget_asked(std::uint32_t host) {
  pause_ = {};  // this one works
  std::erase_if(asked_, [&](const Asked& asked) { return asked.host == host; });
}

Steady NurseryKeeper::due() const {
  if (!nursery_) return unasked_.empty() ? Steady::max() : not_before_;
  return asked_.empty() ? Steady::max() : asked_.front().at + kAnswerWithin;
}

void NurseryKeeper::close(std::chrono::milliseconds patience) {
  if (nursery_) nursery_->close(patience);
  nursery_.reset();
}

}  // namespace reprise::hooks
