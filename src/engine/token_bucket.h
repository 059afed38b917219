// TokenBucket: how many may be started now, and when the next one may.
// Counted in whole parts (model/throttle.h), so that it never drifts.
// Time: comes in; never runs backwards.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "model/throttle.h"

namespace reprise {

class TokenBucket {
 public:
  // What the server was late itself is made up for, up to this much.
  static constexpr Duration kLatenessMax = std::chrono::milliseconds(20);

  // Full.
  TokenBucket(const Rate& rate, std::uint32_t burst, Timestamp now);
  TokenBucket(const Rate& rate, std::uint32_t burst, const ThrottleLevel& level);

  // Keeps the tokens there are, as far as they fit.
  void change(const Rate& rate, std::uint32_t burst, Timestamp now);

  double tokens(Timestamp now) const;
  std::uint64_t whole_tokens(Timestamp now) const { return parts_at(now) / token_; }
  // There must be one.
  void take(Timestamp now);
  // One that was taken and not used.
  void put_back(Timestamp now);
  // When there will be one token more than now; kNever: it is full.
  Timestamp next_token(Timestamp now) const;

  // Somebody has been waiting for the token of `due`, and it is later than that: until settle(),
  // what has come since does not overflow.
  void allow_lateness(Timestamp due, Timestamp now);
  void settle(Timestamp now);

  ThrottleLevel level() const { return {parts_, at_}; }

 private:
  std::uint64_t parts_at(Timestamp now) const;
  // What comes in a time, at most `most`.
  std::uint64_t parts_in(Duration time, std::uint64_t most) const;
  std::uint64_t full() const { return token_ * burst_; }

  std::uint64_t token_;         // parts in a token
  std::uint64_t speed_;         // parts in a microsecond
  std::uint64_t burst_;         // tokens
  std::uint64_t parts_;         // as of at_
  std::uint64_t lateness_ = 0;  // parts it may hold above burst
  Timestamp at_;
};

}  // namespace reprise
