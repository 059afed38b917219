#include "spool/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "base/duration.h"

namespace reprise::spool {
namespace {

constexpr Duration kRejectedRest = std::chrono::seconds(60);
constexpr Duration kFirstTroubleWait = std::chrono::seconds(5);
constexpr Duration kLongestTroubleWait = std::chrono::minutes(5);
// Some file systems tell nobody of new files, and events may be left without a verdict.
constexpr Duration kLookAgain = std::chrono::seconds(60);

// Rejected events and when each may be sent again. Forgets them when that time has come: they are
// sent then, or gone.
class Resting {
 public:
  void add(const std::vector<std::string>& names, Timestamp now) {
    for (const std::string& name : names) until_[name] = now + kRejectedRest;
  }
  void wake(Timestamp now) {
    std::erase_if(until_, [&](const auto& entry) { return entry.second <= now; });
  }
  bool contains(const std::string& name) const { return until_.contains(name); }
  // How long nothing of it is due.
  Duration quiet_for(Timestamp now, Duration longest) const {
    for (const auto& [name, until] : until_) longest = std::min(longest, until - now);
    return std::max(longest, Duration::zero());
  }

 private:
  std::map<std::string, Timestamp> until_;
};

void add_run(DrainResult& total, DrainResult run, std::vector<std::string> left_out) {
  total.accepted += run.accepted;
  total.duplicates += run.duplicates;
  total.dead_lettered += run.dead_lettered;
  total.corrupt += run.corrupt;
  total.failed_batches += run.failed_batches;
  total.local_failures += run.local_failures;
  total.remaining = run.remaining + left_out.size();
  total.retried = run.retried + left_out.size();
  total.rejected_files = std::move(run.rejected_files);
  total.rejected_files.insert(total.rejected_files.end(), left_out.begin(), left_out.end());
  total.end = run.end;
  total.stop_reason = std::move(run.stop_reason);
  total.come_back_after = run.come_back_after;
}

// How long to leave an endpoint in trouble alone: longer each time.
class TroubleWait {
 public:
  Duration next(const DrainResult& run) {
    const Duration wait = std::exchange(wait_, std::min(2 * wait_, kLongestTroubleWait));
    return run.come_back_after.value_or(wait);
  }
  void reset() { wait_ = kFirstTroubleWait; }

 private:
  Duration wait_ = kFirstTroubleWait;
};

}  // namespace

Result<DrainResult> follow(Drain& drain, const WaitForFiles& wait_for_files, const Clock& clock,
                           Pauses& pauses, const DrainWatcher& watcher) {
  DrainResult total;
  Resting resting;
  TroubleWait trouble_wait;
  while (true) {
    resting.wake(clock.now());
    std::vector<std::string> left_out;
    auto run = drain.run([&](const std::string& name) {
      if (!resting.contains(name)) return false;
      left_out.push_back(name);
      return true;
    });
    if (!run) return run.error();
    resting.add(run->rejected_files, clock.now());
    add_run(total, *run, std::move(left_out));
    if (run->end == DrainEnd::refused || run->end == DrainEnd::interrupted) return total;

    if (run->end == DrainEnd::trouble || run->failed_batches > 0) {
      const Duration wait = trouble_wait.next(*run);
      if (watcher.warn) {
        watcher.warn(fmt::format("{}tries again in {}",
                                 run->stop_reason.empty() ? "" : run->stop_reason + "; ",
                                 humanize_duration(wait)));
      }
      // New files must not wake it: a busy producer would have a server in trouble hammered.
      pauses.wait(wait);
    } else {
      trouble_wait.reset();
      wait_for_files(resting.quiet_for(clock.now(), kLookAgain));
    }
    if (pauses.interrupted()) {
      total.end = DrainEnd::interrupted;
      total.stop_reason = "interrupted";
      return total;
    }
  }
}

}  // namespace reprise::spool
