// RejectedLines: tells what is wrong with lines of an input, the first ones by number and the rest
// as a count.
#pragma once

#include <cstdint>

#include "cli/output.h"
#include "cli/progress.h"

namespace reprise::cli {

class RejectedLines {
 public:
  // Both must outlive it.
  RejectedLines(const Output& output, ProgressBar& progress)
      : output_(output), progress_(progress) {}

  void add(std::uint64_t line, const Problem& problem);
  // After the last line.
  void end() const;
  std::uint64_t count() const { return count_; }

 private:
  const Output& output_;
  ProgressBar& progress_;
  std::uint64_t count_ = 0;
};

}  // namespace reprise::cli
