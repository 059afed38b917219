#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace reprise::cli {
namespace {

constexpr std::uint64_t kBarChars = 30;
constexpr auto kDrawEvery = std::chrono::milliseconds(100);

}  // namespace

std::string progress_text(std::uint64_t done_bytes, std::uint64_t total_bytes,
                          std::uint64_t lines) {
  if (total_bytes == 0) return fmt::format("{} lines", lines);
  // The file may grow while it is read.
  const double share =
      std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
  const auto filled = static_cast<std::uint64_t>(share * kBarChars);
  return fmt::format("[{:#<{}}{:-<{}}] {:3.0f}%  {} lines", "", filled, "", kBarChars - filled,
                     share * 100, lines);
}

void ProgressBar::update(std::uint64_t done_bytes, std::uint64_t lines) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now < next_draw_) return;
  next_draw_ = now + kDrawEvery;
  drawn_ = true;
  fmt::print(stderr, "\r{}\x1b[K", progress_text(done_bytes, total_bytes_, lines));
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

}  // namespace reprise::cli
