// What fuzz targets share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace reprise::fuzz {

// What a target gives besides LLVMFuzzerTestOneInput: valid inputs to start from that only the code
// can make. Those that people can read are files in corpus/.
std::vector<std::string> seeds();

// Begins the input of a target that has more than one thing to check: its first byte says which.
struct Choice {
  char which = 0;
  std::string_view rest;
};
inline Choice choice_of(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  return input.empty() ? Choice{} : Choice{input.front(), input.substr(1)};
}

}  // namespace reprise::fuzz
