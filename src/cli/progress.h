// ProgressBar: one line on stderr that is drawn over itself, only when stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::cli {

struct Progress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known, as for a pipe
  std::uint64_t count = 0;  // what people count, which may be something else than `done`
  std::string_view unit;
};

// "[#####-----]  50%  1200 lines": a bar when the total is known, else the count alone.
std::string progress_text(const Progress& progress);

class ProgressBar {
 public:
  explicit ProgressBar(bool shown) : shown_(shown) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second.
  void update(const Progress& progress);
  // Takes the line away, so that something else can be printed there.
  void clear();

 private:
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_draw_{};
};

}  // namespace reprise::cli
