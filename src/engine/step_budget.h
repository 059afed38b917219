// StepBudget: how much one step of the engine may bury, and how many keys it may look at in vain.
// Without it a backlog that dies at one moment, or a hundred thousand keys that wait for one
// throttle, would hold up every command behind it, and the open batch would hold all the payloads.
#pragma once

#include <cstdint>

namespace reprise {

class StepBudget {
 public:
  bool spent() const { return jobs_ >= kJobsMax || bytes_ >= kBytesMax || looked_enough(); }
  void spend(std::uint64_t bytes) {
    ++jobs_;
    bytes_ += bytes;
  }
  void look() { ++looks_; }
  bool looked_enough() const { return looks_ >= kLooksMax; }

 private:
  static constexpr int kJobsMax = 2'000;
  static constexpr std::uint64_t kBytesMax = 16ULL << 20;
  static constexpr int kLooksMax = 5'000;
  int jobs_ = 0;
  int looks_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace reprise
