#include "worker/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <mutex>

namespace reprise::worker {
namespace {

constexpr std::uint64_t kEnough = 65536;

}  // namespace

std::uint64_t raise_descriptor_limit() {
  static std::mutex mutex;
  static std::uint64_t raised_from = 0;
  static std::uint64_t raised_to = 0;
  const std::lock_guard lock(mutex);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kEnough;
  if (limit.rlim_cur == raised_to) return raised_from;
  const std::uint64_t wanted = std::min<std::uint64_t>(limit.rlim_max, kEnough);
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  raised_from = limit.rlim_cur;
  limit_descriptors(wanted);
  raised_to = wanted;
  return raised_from;
}

void limit_descriptors(std::uint64_t limit) {
  rlimit both{};
  if (getrlimit(RLIMIT_NOFILE, &both) != 0) return;
  both.rlim_cur = std::min<std::uint64_t>(limit, both.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &both);
}

}  // namespace reprise::worker
