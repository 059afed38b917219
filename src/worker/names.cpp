// The words of docs/api.md for what a worker or a run is doing.
#include <algorithm>
#include <array>

#include "worker/worker_service.h"

namespace reprise::worker {
namespace {

constexpr std::array<std::string_view, 5> kRunStatusNames = {"running", "succeeded", "failed",
                                                             "cancelled", "lost"};

}  // namespace

std::string_view worker_status_name(WorkerStatus status) {
  static constexpr std::array<std::string_view, 4> kNames = {"stopped", "running", "stopping",
                                                             "restarting"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string_view run_status_name(RunStatus status) {
  return kRunStatusNames[static_cast<std::size_t>(status)];
}

std::optional<RunStatus> run_status_from_name(std::string_view name) {
  const auto found = std::ranges::find(kRunStatusNames, name);
  if (found == kRunStatusNames.end()) return std::nullopt;
  return static_cast<RunStatus>(found - kRunStatusNames.begin());
}

}  // namespace reprise::worker
