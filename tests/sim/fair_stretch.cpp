#include "sim/fair_stretch.h"

#include <cmath>

#include "sim/violation.h"

namespace reprise::sim {

void FairStretch::see(const Weights& weights) {
  if (weights == weights_) return;
  weights_ = weights;
  given_.clear();
}

void FairStretch::give(const std::string& key) {
  if (weights_.size() < 2) return;
  given_.push_back(key);
  check_runs_that_end_here();
}

void FairStretch::check_runs_that_end_here() const {
  double sum = 0;
  for (const auto& [key, weight] : weights_) sum += weight;
  std::map<std::string, double> counts;
  double length = 0;
  for (auto at = given_.rbegin(); at != given_.rend(); ++at) {
    ++counts[*at];
    ++length;
    for (const auto& [key, weight] : weights_) {
      require(std::abs(counts[key] - length * weight / sum) <= 2,
              "of " + std::to_string(static_cast<int>(length)) + " jobs key '" + key + "' got " +
                  std::to_string(static_cast<int>(counts[key])) + ", at a weight of " +
                  std::to_string(weight) + " of " + std::to_string(static_cast<int>(sum)));
    }
  }
}

}  // namespace reprise::sim
