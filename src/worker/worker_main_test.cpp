// The tests start this program again: as the step host of their runners, and as a server to be
// killed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "support/step_recorder.h"
#include "worker/step_runner.h"

namespace reprise::worker {
namespace {

// Runs `script` with `mark` in its environment, five times at once, until somebody kills it.
[[noreturn]] void run_steps(const char* lock_file, const char* mark, const char* script) {
  const auto directory = std::filesystem::path(lock_file).parent_path();
  const auto runner = StepRunner::make({.lock_file = lock_file});
  for (int i = 0; runner && i < 5; ++i) {
    (*runner)->start(
        {.script = script, .directory = directory, .environment = {"PATH=/usr/bin:/bin", mark}},
        std::make_shared<test::StepRecorder>());
  }
  while (true) pause();
}

}  // namespace
}  // namespace reprise::worker

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "step-host") return reprise::worker::run_step_host();
  if (command == "run-steps" && argc > 4) reprise::worker::run_steps(argv[2], argv[3], argv[4]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
