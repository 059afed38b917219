#include "model/throttle.h"

#include <algorithm>
#include <cmath>

namespace reprise {

std::uint32_t default_burst(const Rate& rate) {
  return static_cast<std::uint32_t>(
      std::clamp(std::ceil(rate.per_second()), 1.0, static_cast<double>(kMaxBurst)));
}

}  // namespace reprise
