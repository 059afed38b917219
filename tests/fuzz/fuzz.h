// What a fuzz target gives besides LLVMFuzzerTestOneInput: valid inputs to start from.
#pragma once

#include <string>
#include <vector>

namespace reprise::fuzz {

std::vector<std::string> seeds();

}  // namespace reprise::fuzz
