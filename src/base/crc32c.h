// CRC-32C (Castagnoli): the checksum of every stored record. Hardware when the CPU has it.
#pragma once

#include <cstdint>
#include <string_view>

namespace reprise {

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);

namespace internal {
// The portable version, exposed so that a test can compare the two.
std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t seed);
}  // namespace internal

}  // namespace reprise
