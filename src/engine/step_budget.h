// StepBudget: how much one step of the engine may bury. Without it a backlog that dies at one
// moment would hold up every command behind it, and the open batch would hold all its payloads.
#pragma once

#include <cstdint>

namespace reprise {

class StepBudget {
 public:
  bool spent() const { return jobs_ >= kJobsMax || bytes_ >= kBytesMax; }
  void spend(std::uint64_t bytes) {
    ++jobs_;
    bytes_ += bytes;
  }

 private:
  static constexpr int kJobsMax = 2'000;
  static constexpr std::uint64_t kBytesMax = 16ULL << 20;
  int jobs_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace reprise
