// The tests start this program again, as the nursery of their hosts and as a broker to be killed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "hooks/hook_host_main.h"
#include "hooks/hook_runner.h"
#include "hooks/nursery.h"
#include "support/scripted_host.h"

namespace reprise::hooks {
namespace {

// A runner with two scripted hosts, one of them busy, until somebody kills it.
[[noreturn]] void run_hooks(const char* program) {
  const auto runner = HookRunner::start({.program = program});
  for (const QueueNumber queue : {1U, 2U}) {
    HookMessage message{.job = std::make_shared<JobRecord>(), .error = queue == 1 ? "loop" : ""};
    runner->submit({HookDefinition{.queue = queue,
                                   .name = {.name = "q"},
                                   .sources = {"", "any"},
                                   .limits = {.timeout = std::chrono::minutes(5)}},
                    HookCall{.id = queue,
                             .queue = queue,
                             .hook = HookKind::on_failure,
                             .message = std::move(message)}});
  }
  while (true) pause();
}

}  // namespace
}  // namespace reprise::hooks

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "hook-host" && std::string_view(argv[0]).ends_with("scripted-host")) {
    return reprise::hooks::run_nursery(reprise::hooks::kNurseryControlFd,
                                       reprise::test::run_scripted_host);
  }
  if (command == "hook-host") return reprise::hooks::hook_host_main();
  if (command == "run-hooks" && argc > 2) reprise::hooks::run_hooks(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
