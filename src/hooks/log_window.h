// LogWindow: at most so many lines in a second, and how many were left out.
//
// Threads: one owner. Time: passed in, never read.
#pragma once

#include <cstdint>

#include "hooks/steady_time.h"

namespace reprise::hooks {

class LogWindow {
 public:
  explicit LogWindow(std::uint32_t lines_per_second) : lines_per_second_(lines_per_second) {}

  // Whether a line may be written; otherwise it is counted.
  bool admit(Steady now) {
    if (now >= ends_at_ && left_out_ == 0) {
      ends_at_ = now + std::chrono::seconds(1);
      written_ = 0;
    }
    if (written_ < lines_per_second_) {
      ++written_;
      return true;
    }
    ++left_out_;
    return false;
  }

  bool has_left_out() const { return left_out_ > 0; }
  Steady ends_at() const { return ends_at_; }
  // At the end of a second in which lines were left out: how many, which is a line in itself.
  std::uint64_t take_left_out(Steady now) {
    const std::uint64_t left_out = left_out_;
    left_out_ = 0;
    ends_at_ = now + std::chrono::seconds(1);
    written_ = 1;
    return left_out;
  }

 private:
  const std::uint32_t lines_per_second_;
  Steady ends_at_{};
  std::uint32_t written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace reprise::hooks
