#include "error_texts.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace reprise::bench {
namespace {

// {0} and {1} are numbers of a few digits, {2} is a long one. Hex has a letter or 0x in front, as a
// run of digits alone is a number and not an id.
constexpr auto kTexts = std::to_array<std::string_view>({
    "timeout after {0} ms on host 'db-{1}'",
    "connection refused: 10.0.{1}.7:{0}",
    "connection reset by peer after {2} bytes",
    "HTTP 503 from https://api.example.com/v1/orders/{2}",
    "HTTP 429: retry after {0} s",
    "deadlock detected: process {0} waits for ShareLock on transaction {2}",
    "duplicate key value violates unique constraint: (order_id)=({2})",
    "no such customer: c{2:015x}",
    "invalid card number ending in {0}",
    "payment declined with code {1}",
    "out of memory: {2} bytes wanted",
    "disk quota exceeded on volume 'vol-{1}'",
    "cannot parse line {0}, column {1}: unexpected end of input",
    "index {0} is out of range for a list of {1}",
    "worker killed by signal {1} after {0} s",
    "certificate of 'shard-{1}' expired {0} days ago",
    "name 'cache-{1}' cannot be resolved",
    "version conflict: {0} wanted, {2} found",
    "template 'mail-{1}' has no field {0}",
    "lock 0x{2:012x} is held by another since {0} ms",
});
static_assert(kTexts.size() == kErrorKinds);

}  // namespace

std::string error_text(std::uint64_t serial) {
  // Mixed, so that neighbours do not count upwards.
  const std::uint64_t mixed = (serial + 1) * 0x9E3779B97F4A7C15;
  const std::uint64_t few = mixed >> 48;
  const std::uint64_t fewer = mixed >> 40 & 0xFF;
  const std::uint64_t many = mixed & 0xFFFFFFFFFF;
  return fmt::format(fmt::runtime(kTexts[serial % kErrorKinds]), few, fewer, many);
}

}  // namespace reprise::bench
