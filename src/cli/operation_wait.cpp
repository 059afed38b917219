#include "cli/operation_wait.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/progress.h"

namespace reprise::cli {
namespace {

// Short at first, for small operations; then no more often than a person notices.
constexpr auto kFirstPause = std::chrono::milliseconds(50);
constexpr auto kLongestPause = std::chrono::milliseconds(800);

}  // namespace

Result<client::Reply> wait_for_operation(CommandContext& context, const std::string& id) {
  ProgressBar bar(context.terminal().err_is_tty && !context.json());
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    auto reply = context.client().show_operation(id);
    if (!reply || reply->refused()) return reply;
    const auto operation = reply->json();
    if (operation["state"].string_or("") != "running") return reply;
    const auto done = operation["done"].unsigned_integer().value_or(0);
    bar.update({.done = done + operation["skipped"].unsigned_integer().value_or(0),
                .total = operation["total"].unsigned_integer().value_or(0),
                .count = done,
                .unit = "jobs"});
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace reprise::cli
