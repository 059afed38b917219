// Simulation: one seed picks operations, clock steps, crashes and restarts for a server and for the
// model, and compares them after each step.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sim/disk.h"
#include "sim/saboteur.h"

namespace reprise::sim {

struct SimulationOptions {
  std::uint64_t seed = 0;
  DiskKind disk = DiskKind::memory;
  Sabotage sabotage = Sabotage::none;
  bool trace = false;  // tell every step on stdout
};

struct SimulationResult {
  std::string violation;                          // empty: every promise was kept
  std::map<std::string, std::uint64_t> happened;  // what was met, and how often
};

SimulationResult simulate(const SimulationOptions& options);

}  // namespace reprise::sim
