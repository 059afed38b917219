// Runs a fuzz target with any compiler: the valid inputs, damaged in ways that are the same in each
// run. For more than that, link the target with libFuzzer instead of this file.
//
//   hook_protocol_fuzz [iterations [seed]]      REPRISE_FUZZ_ITERATIONS, REPRISE_FUZZ_SEED
//   REPRISE_FUZZ_CORPUS                     a directory of more valid inputs
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "fuzz/fuzz.h"

namespace {

using reprise::SeededRandom;

constexpr std::uint64_t kDefaultIterations = 100'000;

void run(const std::string& input) {
  // A copy of the exact size, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

// Values at the edges of what lengths and counts can be.
char edge(SeededRandom& random) {
  constexpr unsigned char kEdges[] = {0, 1, 2, 3, 15, 16, 17, 0x7F, 0x80, 0x81, 0xC3, 0xFE, 0xFF};
  return static_cast<char>(kEdges[random.below(sizeof kEdges)]);
}

void damage(std::string& input, const std::vector<std::string>& seeds, SeededRandom& random) {
  const std::size_t at = input.empty() ? 0 : random.below(input.size());
  const std::size_t some = random.below(8) + 1;
  switch (input.empty() ? 5 : random.below(7)) {
    case 0:
      input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1:
      input[at] = static_cast<char>(random.next_u64());
      break;
    case 2:
      input[at] = edge(random);
      break;
    case 3:
      input.erase(at, some);
      break;
    case 4:
      input.insert(at, input.substr(random.below(input.size()), some));
      break;
    case 5:
      input.insert(at, some, edge(random));
      break;
    default: {
      const std::string& other = seeds[random.below(seeds.size())];
      input = input.substr(0, at) + other.substr(random.below(other.size()));
    }
  }
}

std::uint64_t setting(int count, char** arguments, int index, const char* name,
                      std::uint64_t fallback) {
  if (index < count) return std::strtoull(arguments[index], nullptr, 10);
  if (const char* value = std::getenv(name)) return std::strtoull(value, nullptr, 10);
  return fallback;
}

// The files of the corpus are valid inputs too, and those that found a fault once.
std::vector<std::string> inputs() {
  std::vector<std::string> inputs = reprise::fuzz::seeds();
  const char* directory = std::getenv("REPRISE_FUZZ_CORPUS");
  if (directory == nullptr || !std::filesystem::is_directory(directory)) return inputs;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

}  // namespace

int main(int count, char** arguments) {
  const std::uint64_t iterations =
      setting(count, arguments, 1, "REPRISE_FUZZ_ITERATIONS", kDefaultIterations);
  const std::uint64_t seed = setting(count, arguments, 2, "REPRISE_FUZZ_SEED", 1);
  // First of all, so that a crash leaves what is needed to repeat it.
  std::printf("%llu iterations from seed %llu\n", static_cast<unsigned long long>(iterations),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const std::vector<std::string> seeds = inputs();
  if (seeds.empty()) {
    std::fputs("no input to start from: REPRISE_FUZZ_CORPUS names no directory\n", stderr);
    return 2;
  }
  for (const std::string& each : seeds) run(each);
  SeededRandom random(seed);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    std::string input = seeds[random.below(seeds.size())];
    for (std::uint64_t times = random.below(4) + 1; times > 0; --times)
      damage(input, seeds, random);
    run(input);
  }
  return 0;
}
