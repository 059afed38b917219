// Warnings: lines on stderr about what is left alone, the first ones whole and the rest as a count.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/output.h"
#include "cli/progress.h"

namespace reprise::cli {

class Warnings {
 public:
  // Both must outlive it.
  Warnings(const Output& output, ProgressBar& progress) : output_(output), progress_(progress) {}

  void add(std::string_view text);
  // Tells how many more there were; the next ones are told again.
  void end();

 private:
  const Output& output_;
  ProgressBar& progress_;
  std::uint64_t count_ = 0;
};

}  // namespace reprise::cli
