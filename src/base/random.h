// Random: where unpredictable numbers come from (lease tokens). Injected, so that a simulation with
// one seed repeats exactly.
// Threads: one owner, no locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace reprise {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next_u64() = 0;
};

// The kernel's generator, read in blocks: lease tokens are secrets.
class SystemRandom final : public Random {
 public:
  std::uint64_t next_u64() override;

 private:
  std::array<std::uint64_t, 64> block_{};
  std::size_t used_ = block_.size();
};

// Repeatable; for tests and simulation.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next_u64() override;
  // Uniform enough for tests: 0 <= result < bound.
  std::uint64_t below(std::uint64_t bound) { return next_u64() % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace reprise
