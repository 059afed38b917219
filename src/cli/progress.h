// ProgressBar: one line on stderr that is drawn over itself, only when stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reprise::cli {

// "[#####-----]  50%  1200 lines": a bar when the total is known, else the count alone.
std::string progress_text(std::uint64_t done_bytes, std::uint64_t total_bytes, std::uint64_t lines);

class ProgressBar {
 public:
  // `total_bytes` 0: not known, as for a pipe.
  ProgressBar(bool shown, std::uint64_t total_bytes) : shown_(shown), total_bytes_(total_bytes) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second.
  void update(std::uint64_t done_bytes, std::uint64_t lines);
  // Takes the line away, so that something else can be printed there.
  void clear();

 private:
  bool shown_;
  std::uint64_t total_bytes_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_draw_{};
};

}  // namespace reprise::cli
