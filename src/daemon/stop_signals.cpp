#include "daemon/stop_signals.h"

#include <semaphore.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace reprise::daemon {
namespace {

enum Phase : int { kStarting, kArmed, kStopping };

// Handlers reach nothing but globals, and may use only what is async-signal-safe: lock-free
// atomics, sem_post and _exit.
std::atomic<int> phase = kStarting;
std::atomic<int> first_signal = 0;
sem_t stop_requested;
static_assert(std::atomic<int>::is_always_lock_free);

void handle(int signal) {
  const int saved_errno = errno;
  int expected = kArmed;
  if (phase.compare_exchange_strong(expected, kStopping)) {
    first_signal = signal;
    sem_post(&stop_requested);
  } else {
    _exit(expected == kStarting ? 0 : 128 + signal);
  }
  errno = saved_errno;
}

}  // namespace

StopSignals::StopSignals() {
  sem_init(&stop_requested, 0, 0);
  std::signal(SIGPIPE, SIG_IGN);
  for (const int signal : std::array{SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void StopSignals::arm() { phase = kArmed; }

int StopSignals::wait() {
  while (sem_wait(&stop_requested) != 0 && errno == EINTR) {
  }
  return first_signal;
}

}  // namespace reprise::daemon
