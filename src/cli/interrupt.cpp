#include "cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <ctime>

namespace reprise::cli {
namespace {

constexpr long kSameInterruptMs = 500;

// Free of locks, as a signal handler needs them.
std::atomic<bool> was_interrupted{false};
std::atomic<bool> next_ends{false};
timespec first_at{};  // the handler's own

// Only what a signal handler may do.
void on_interrupt(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (!was_interrupted) {
    first_at = now;
    was_interrupted = true;
    return;
  }
  const long passed_ms = static_cast<long>(now.tv_sec - first_at.tv_sec) * 1000 +
                         (now.tv_nsec - first_at.tv_nsec) / 1'000'000;
  if (!next_ends || passed_ms < kSameInterruptMs) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void catch_interrupts(NextInterrupt next) {
  was_interrupted = false;
  next_ends = next == NextInterrupt::ends;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return was_interrupted; }

}  // namespace reprise::cli
