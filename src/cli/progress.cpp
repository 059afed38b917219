#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace reprise::cli {
namespace {

constexpr std::uint64_t kBarChars = 30;
constexpr auto kDrawEvery = std::chrono::milliseconds(100);

}  // namespace

std::string progress_text(const Progress& progress) {
  const auto& [done, total, count, unit] = progress;
  if (total == 0) return fmt::format("{} {}", count, unit);
  // The total may be less than what is done in the end: a file grows while it is read.
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::uint64_t>(share * kBarChars);
  return fmt::format("[{:#<{}}{:-<{}}] {:3.0f}%  {} {}", "", filled, "", kBarChars - filled,
                     share * 100, count, unit);
}

void ProgressBar::update(const Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now < next_draw_) return;
  next_draw_ = now + kDrawEvery;
  drawn_ = true;
  fmt::print(stderr, "\r{}\x1b[K", progress_text(progress));
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace reprise::cli
