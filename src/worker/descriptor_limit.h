// How many descriptors the server and its steps may have.
//
// Each step takes four of the server's, and the usual limit of 1024 is little for that. Steps begin
// with what the server began with: some programs suffer from a high limit.
#pragma once

#include <cstdint>

namespace reprise::worker {

// As far as the hard limit lets us. Returns what it was before the first time.
std::uint64_t raise_descriptor_limit();
void limit_descriptors(std::uint64_t limit);

}  // namespace reprise::worker
