#include "engine/token_bucket.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace reprise {
namespace {

std::uint64_t micros(Duration time) {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

}  // namespace

TokenBucket::TokenBucket(const Rate& rate, std::uint32_t burst, Timestamp now)
    : TokenBucket(rate, burst, ThrottleLevel{.parts = micros(rate.per) * burst, .at = now}) {}

TokenBucket::TokenBucket(const Rate& rate, std::uint32_t burst, const ThrottleLevel& level)
    : token_(micros(rate.per)),
      speed_(rate.count),
      burst_(burst),
      parts_(level.parts),
      at_(level.at) {
  parts_ = std::min(parts_, full());
}

void TokenBucket::change(const Rate& rate, std::uint32_t burst, Timestamp now) {
  const double tokens = this->tokens(now);
  token_ = micros(rate.per);
  speed_ = rate.count;
  burst_ = burst;
  parts_ = tokens >= static_cast<double>(burst)
               ? full()
               : static_cast<std::uint64_t>(tokens * static_cast<double>(token_));
  lateness_ = 0;
  at_ = now;
}

double TokenBucket::tokens(Timestamp now) const {
  return static_cast<double>(parts_at(now)) / static_cast<double>(token_);
}

void TokenBucket::take(Timestamp now) {
  parts_ = parts_at(now);
  at_ = std::max(at_, now);
  REPRISE_CHECK(parts_ >= token_);
  parts_ -= token_;
}

void TokenBucket::put_back(Timestamp now) {
  parts_ = std::min(parts_at(now) + token_, full());
  at_ = std::max(at_, now);
}

Timestamp TokenBucket::next_token(Timestamp now) const {
  const std::uint64_t parts = parts_at(now);
  if (parts >= full()) return kNever;
  const std::uint64_t missing = token_ - parts % token_;
  const std::uint64_t wait = (missing + speed_ - 1) / speed_;
  return add_saturating(now, std::chrono::microseconds(static_cast<std::int64_t>(wait)));
}

void TokenBucket::allow_lateness(Timestamp due, Timestamp now) {
  if (due > now) return;
  const Duration late = std::min(now - due, kLatenessMax);
  // The token came up to a microsecond before it was due, as that is rounded up.
  lateness_ = parts_in(late, UINT64_MAX - full() - speed_) + speed_ - 1;
}

void TokenBucket::settle(Timestamp now) {
  lateness_ = 0;
  parts_ = parts_at(now);
  at_ = std::max(at_, now);
}

std::uint64_t TokenBucket::parts_at(Timestamp now) const {
  const std::uint64_t most = full() + lateness_;
  if (parts_ >= most) return most;
  return parts_ + (now > at_ ? parts_in(now - at_, most - parts_) : 0);
}

std::uint64_t TokenBucket::parts_in(Duration time, std::uint64_t most) const {
  std::uint64_t parts = 0;
  if (__builtin_mul_overflow(micros(time), speed_, &parts)) return most;
  return std::min(parts, most);
}

}  // namespace reprise
