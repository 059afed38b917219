// FairStretch: deliveries of one lane while the same keys with the same weights had jobs in it.
// Over every run of them each key's share is right to within two jobs, whatever went before.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reprise::sim {

class FairStretch {
 public:
  using Weights = std::map<std::string, std::uint32_t>;

  // The keys that have jobs in the lane; empty: it cannot be said who is owed what.
  void see(const Weights& weights);
  // The next job is one of `key`. Throws a Violation.
  void give(const std::string& key);
  std::size_t length() const { return given_.size(); }

 private:
  void check_runs_that_end_here() const;

  Weights weights_;
  std::vector<std::string> given_;
};

}  // namespace reprise::sim
