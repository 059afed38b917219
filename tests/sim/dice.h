// Dice: the choices of one simulated run. The same seed makes the same choices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>

#include "base/random.h"

namespace reprise::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  std::uint64_t seed() { return random_.next_u64(); }
  bool percent(std::uint64_t chance) { return below(100) < chance; }

  template <class T>
  T pick(std::initializer_list<T> choices) {
    return *std::next(choices.begin(), static_cast<std::ptrdiff_t>(below(choices.size())));
  }

  // An index, each as likely as its weight.
  std::size_t weighted(std::span<const std::uint32_t> weights) {
    std::uint64_t sum = 0;
    for (const std::uint32_t weight : weights) sum += weight;
    std::uint64_t roll = below(sum);
    std::size_t index = 0;
    while (roll >= weights[index]) roll -= weights[index++];
    return index;
  }

 private:
  SeededRandom random_;
};

}  // namespace reprise::sim
