#include "peers/windows.h"

#include <utility>

#include "load_error.h"

namespace reprise::bench::peers {

Nanoseconds PushWindow::on_pushed(TimePoint now) {
  if (sent_.empty()) throw LoadError("a push was acknowledged that nobody sent");
  const Nanoseconds took = now - sent_.front();
  sent_.pop_front();
  return took;
}

ClaimWindow::Ask ClaimWindow::next(std::uint64_t allowed, TimePoint now) {
  const std::size_t free = window_ - open_;
  const std::size_t most = std::min<std::uint64_t>(free, allowed);
  Ask ask;
  if (most == 0 || now < rests_until_) return ask;
  if (open_ == 0 && appetite_ <= 1 && style_ != ClaimStyle::poll) {
    ask = {.jobs = style_ == ClaimStyle::batch ? most : 1, .wait = true};
  } else if (free >= refill_at(window_)) {
    ask = {.jobs = std::min(most, appetite_)};
  }
  open_ += ask.jobs;
  return ask;
}

void ClaimWindow::on_job() {
  fed_ = true;
  appetite_ = style_ == ClaimStyle::single ? std::min(appetite_ + 1, window_) : window_;
}

void ClaimWindow::on_none(std::size_t jobs, TimePoint now) {
  open_ -= jobs;
  // A reply with some of many jobs is no empty one.
  if (style_ != ClaimStyle::single && std::exchange(fed_, false)) return;
  if (style_ == ClaimStyle::poll) {
    rests_until_ = now + kRest;
  } else {
    appetite_ = 0;
  }
}

}  // namespace reprise::bench::peers
