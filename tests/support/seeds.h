// How many seeds a random test runs through: as many as it takes in a few seconds, or more by the
// environment, `REPRISE_SEEDS=20` for twenty times that.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace reprise::test {

inline std::uint64_t seed_count(std::uint64_t usual) {
  const char* text = std::getenv("REPRISE_SEEDS");
  const std::uint64_t factor = text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  return usual * (factor == 0 ? 1 : factor);
}

}  // namespace reprise::test
