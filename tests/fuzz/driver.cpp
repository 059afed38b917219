// Runs a fuzz target with any compiler: the valid inputs, damaged in ways that are the same in each
// run. For more than that, link the target with libFuzzer instead of this file.
//
//   hook_protocol_fuzz [iterations [seed]]      REPRISE_FUZZ_ITERATIONS, REPRISE_FUZZ_SEED
//   hook_protocol_fuzz --write-seeds DIRECTORY  as a corpus for libFuzzer
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using reprise::SeededRandom;

constexpr std::uint64_t kDefaultIterations = 1'000'000;

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

// Most damage should reach the decoders, so most frames get a length that fits.
void repair_length(std::string& input) {
  if (input.size() < 4) return;
  const auto size = static_cast<std::uint32_t>(input.size() - 4);
  std::memcpy(input.data(), &size, sizeof size);
}

std::uint64_t setting(int count, char** arguments, int index, const char* name,
                      std::uint64_t fallback) {
  if (index < count) return std::strtoull(arguments[index], nullptr, 10);
  if (const char* value = std::getenv(name)) return std::strtoull(value, nullptr, 10);
  return fallback;
}

int write_seeds(const std::string& directory) {
  int number = 0;
  for (const std::string& seed : reprise::fuzz::seeds()) {
    std::ofstream file(directory + "/seed" + std::to_string(++number), std::ios::binary);
    file << seed;
    if (!file.flush()) return 1;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], "--write-seeds") == 0)
    return write_seeds(arguments[2]);
  const std::uint64_t iterations =
      setting(count, arguments, 1, "REPRISE_FUZZ_ITERATIONS", kDefaultIterations);
  const std::uint64_t seed = setting(count, arguments, 2, "REPRISE_FUZZ_SEED", 1);
  // First of all, so that a crash leaves what is needed to repeat it.
  std::printf("%llu iterations from seed %llu\n", static_cast<unsigned long long>(iterations),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const std::vector<std::string> seeds = reprise::fuzz::seeds();
  for (const std::string& each : seeds) run(each);
  SeededRandom random(seed);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    std::string input = seeds[random.below(seeds.size())];
    for (std::uint64_t times = random.below(4) + 1; times > 0; --times)
      damage(input, seeds, random);
    if (random.below(8) != 0) repair_length(input);
    run(input);
  }
  return 0;
}
