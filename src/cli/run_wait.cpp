#include "cli/run_wait.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/run_record.h"

namespace reprise::cli {
namespace {

using std::chrono::steady_clock;

constexpr Duration kLongestWait = std::chrono::seconds(30);
// A server that does not wait is not to be stormed.
constexpr auto kPause = std::chrono::milliseconds(50);

}  // namespace

Result<client::Reply> wait_for_run(CommandContext& context, const std::string& id,
                                   std::optional<Duration> timeout,
                                   const std::function<bool()>& stop) {
  const auto began = steady_clock::now();
  context.client().set_keep_going([&stop] { return !stop(); });
  while (true) {
    Duration left = kLongestWait;
    if (timeout) {
      const auto passed = std::chrono::duration_cast<Duration>(steady_clock::now() - began);
      left = std::max(*timeout - passed, Duration::zero());
    }
    const Duration wait =
        std::chrono::ceil<std::chrono::milliseconds>(std::min(left, kLongestWait));
    auto reply = context.client().show_run(id, wait);
    const bool ended = !reply || reply->refused() || !run_is_running(reply->json());
    if (ended || stop() || left == Duration::zero()) {
      context.client().set_keep_going({});
      return reply;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace reprise::cli
