// FakeClock: time that moves only when a test says so.
// Threads: one owner, no locks.
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/time.h"

namespace reprise::test {

class FakeClock final : public Clock {
 public:
  Timestamp now() const override { return now_; }
  void advance(Duration by) { now_ += by; }
  void set(Timestamp now) { now_ = now; }

 private:
  Timestamp now_ = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
};

}  // namespace reprise::test
