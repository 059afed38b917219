#include "storage/rocksdb/log_block.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace reprise::storage {
namespace {

struct Header {
  std::uint32_t checksum{};
  std::uint16_t length{};
  std::uint8_t type{};

  bool has_known_type() const { return type >= 1 && type <= 4; }
};

Header header_at(std::string_view block, std::size_t at) {
  ByteReader in(block.substr(at, kLogHeaderBytes));
  return {.checksum = in.fixed<std::uint32_t>(),
          .length = in.fixed<std::uint16_t>(),
          .type = in.fixed<std::uint8_t>()};
}

// RocksDB stores checksums masked, because a checksum of checksums is a weak one.
std::uint32_t masked(std::uint32_t checksum) {
  return ((checksum >> 15) | (checksum << 17)) + 0xa282ead8U;
}

bool checksum_holds(std::string_view block, std::size_t at, const Header& header,
                    std::size_t length) {
  constexpr std::size_t kTypeOffset = 6;  // type and data are covered, and stand together
  return header.checksum == masked(crc32c(block.substr(at + kTypeOffset, 1 + length)));
}

// Where the fragment at `at` ends; the block's end when its header makes no sense.
std::size_t end_of_fragment(std::string_view block, std::size_t at) {
  if (at + kLogHeaderBytes > block.size()) return block.size();
  const Header header = header_at(block, at);
  if (!header.has_known_type()) return block.size();
  return std::min(at + kLogHeaderBytes + header.length, block.size());
}

}  // namespace

std::optional<Fragment> fragment_at(std::string_view block, std::size_t at) {
  if (at + kLogHeaderBytes > block.size()) return std::nullopt;
  const Header header = header_at(block, at);
  const std::size_t bytes = kLogHeaderBytes + header.length;
  if (!header.has_known_type() || at + bytes > block.size()) return std::nullopt;
  if (!checksum_holds(block, at, header, header.length)) return std::nullopt;
  return Fragment{.type = static_cast<FragmentType>(header.type), .bytes = bytes};
}

bool is_cut_short(std::string_view block, std::size_t at) {
  if (at + kLogHeaderBytes > block.size()) return block.size() < kLogBlockBytes;
  const Header header = header_at(block, at);
  const std::size_t end = at + kLogHeaderBytes + header.length;
  if (end <= block.size() || end > kLogBlockBytes) return false;
  return !checksum_holds(block, at, header, block.size() - at - kLogHeaderBytes);
}

bool has_unwritten_unit(std::string_view block, std::size_t at, std::size_t unit) {
  const std::size_t end = end_of_fragment(block, at);
  while (at < end) {
    const std::size_t unit_end = std::min((at / unit + 1) * unit, block.size());
    const std::string_view bytes = block.substr(at, unit_end - at);
    if (std::ranges::all_of(bytes, [](char byte) { return byte == 0; })) return true;
    at = unit_end;
  }
  return false;
}

bool has_record_from(std::string_view block, std::size_t at) {
  for (; at + kLogHeaderBytes <= block.size(); ++at) {
    const auto type = static_cast<std::uint8_t>(block[at + kLogHeaderBytes - 1]);
    if (type != 1 && type != 2) continue;  // spares nearly all checksums
    const auto fragment = fragment_at(block, at);
    if (fragment && fragment->begins_record()) return true;
  }
  return false;
}

}  // namespace reprise::storage
