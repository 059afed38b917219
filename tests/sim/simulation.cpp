#include "sim/simulation.h"

#include "sim/run.h"

namespace reprise::sim {

SimulationResult simulate(const SimulationOptions& options) {
  SimulationResult result;
  try {
    Run run(options);
    run.run();
    result.happened = run.take_happened();
  } catch (const std::exception& violation) {  // a Violation, or worse
    result.violation = violation.what();
  }
  return result;
}

}  // namespace reprise::sim
