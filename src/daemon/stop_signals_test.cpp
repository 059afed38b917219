#include "daemon/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

namespace reprise::daemon {
namespace {

// Each body runs in a child process, whose exit code is what is tested.

constexpr int kWaitReturned = 42;

TEST(StopSignalsDeathTest, BeforeItServesASignalEndsItAtOnce) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        std::raise(SIGTERM);
        std::exit(1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StopSignalsDeathTest, TheFirstSignalIsARequestToStop) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          StopSignals signals;
          signals.arm();
          std::raise(signal);
          std::exit(signals.wait() == signal ? kWaitReturned : 1);
        },
        testing::ExitedWithCode(kWaitReturned), "");
  }
}

TEST(StopSignalsDeathTest, ASecondSignalEndsItAtOnceWithItsNumber) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        signals.arm();
        std::raise(SIGTERM);
        std::raise(SIGINT);
        std::exit(1);
      },
      testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(StopSignalsDeathTest, ABrokenPipeAndWhatNohupIgnoresAreIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        const StopSignals signals;
        std::raise(SIGHUP);
        std::raise(SIGPIPE);
        std::exit(kWaitReturned);
      },
      testing::ExitedWithCode(kWaitReturned), "");
}

}  // namespace
}  // namespace reprise::daemon
