// Valid inputs as files, for libFuzzer.
#pragma once

#include <fstream>
#include <ios>
#include <string>

#include "fuzz/fuzz.h"

namespace reprise::fuzz {

// 0, or the exit code of a failure.
inline int write_seeds(const std::string& directory) {
  int number = 0;
  for (const std::string& seed : seeds()) {
    std::ofstream file(directory + "/seed" + std::to_string(++number), std::ios::binary);
    file << seed;
    if (!file.flush()) return 1;
  }
  return 0;
}

}  // namespace reprise::fuzz
