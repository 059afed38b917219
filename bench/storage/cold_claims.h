// Cold claims: how fast a broker that has just been started takes jobs out of a backlog that is on
// disk only. The broker's core over the storage, without threads and without HTTP.
#pragma once

#include <cstdint>
#include <string>

namespace reprise::bench {

struct ClaimOptions {
  std::string folder;  // of a backlog
  std::uint64_t jobs = 500'000;
  std::uint32_t jobs_per_claim = 100;
  bool ack = false;  // each claim's jobs, in a commit of their own
};

// The report, as JSON.
std::string claim_cold(const ClaimOptions& options);

}  // namespace reprise::bench
