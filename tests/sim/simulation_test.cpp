// Thousands of seeds on two kinds of storage. To look at one that failed, run what it prints:
//   REPRISE_SIM_SEED=1234 sim_test --gtest_filter='Memory/*'
// which tells every step of that seed. REPRISE_SIM_SEEDS=n runs n seeds on each kind of storage.
#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>

namespace reprise::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlowdown = 10;
#elif !defined(__OPTIMIZE__)
constexpr std::uint64_t kSlowdown = 5;
#else
constexpr std::uint64_t kSlowdown = 1;
#endif

// So that ctest -j uses all cores; seeds are dealt out in turn.
constexpr std::uint64_t kShards = 4;

std::optional<std::uint64_t> number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 0);
}

struct Suite {
  const char* name;
  DiskKind disk;
  std::uint64_t seeds;

  friend std::ostream& operator<<(std::ostream& out, const Suite& suite) {
    return out << suite.name;
  }
};

class SimulatedServer : public testing::TestWithParam<std::tuple<Suite, std::uint64_t>> {
 protected:
  const Suite& suite() const { return std::get<0>(GetParam()); }
  std::uint64_t shard() const { return std::get<1>(GetParam()); }

  void run(std::uint64_t seed, bool trace) {
    const auto result = simulate({.seed = seed, .disk = suite().disk, .trace = trace});
    ASSERT_EQ(result.violation, "")
        << "seed " << seed << " on " << suite().name << "; to see every step:\n"
        << "REPRISE_SIM_SEED=" << seed << " sim_test --gtest_filter='" << suite().name << "/*'";
  }
};

TEST_P(SimulatedServer, KeepsItsPromises) {
  if (const auto seed = number_from_environment("REPRISE_SIM_SEED")) {
    if (shard() > 0) GTEST_SKIP() << "one seed is run by the first shard";
    return run(*seed, true);
  }
  const std::uint64_t seeds =
      number_from_environment("REPRISE_SIM_SEEDS").value_or(suite().seeds / kSlowdown);
  for (std::uint64_t seed = 1 + shard(); seed <= seeds; seed += kShards) {
    ASSERT_NO_FATAL_FAILURE(run(seed, false));
  }
}

std::string shard_name(const testing::TestParamInfo<SimulatedServer::ParamType>& info) {
  return "Shard" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Memory, SimulatedServer,
                         testing::Combine(testing::Values(Suite{"Memory", DiskKind::memory, 8'000}),
                                          testing::Range<std::uint64_t>(0, kShards)),
                         shard_name);
INSTANTIATE_TEST_SUITE_P(Durable, SimulatedServer,
                         testing::Combine(testing::Values(Suite{"Durable", DiskKind::durable, 600}),
                                          testing::Range<std::uint64_t>(0, kShards)),
                         shard_name);

}  // namespace
}  // namespace reprise::sim
