// The format of RocksDB's log files (its journal and its manifest), as far as telling a torn tail
// from damage needs it: blocks of 32 KiB that hold fragments of records, each with a checksum.
//   fragment: masked CRC-32C u32 of type and data, data length u16, type u8, data
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::storage {

inline constexpr std::size_t kLogBlockBytes = 32768;
inline constexpr std::size_t kLogHeaderBytes = 7;

enum class FragmentType : std::uint8_t { full = 1, first = 2, middle = 3, last = 4 };

struct Fragment {
  FragmentType type{};
  std::size_t bytes{};  // header included

  bool begins_record() const { return type == FragmentType::full || type == FragmentType::first; }
  bool ends_record() const { return type == FragmentType::full || type == FragmentType::last; }
};

// The fragment at `at`, if a whole one with the right checksum is there. `block` is a block, or the
// part of it that the file has.
std::optional<Fragment> fragment_at(std::string_view block, std::size_t at);

// Whether the fragment at `at`, which fragment_at() did not accept, reaches past the file's end:
// its writer was stopped while writing. Not so if the length alone is what is wrong.
bool is_cut_short(std::string_view block, std::size_t at);

// Whether a unit of `unit` bytes, as aligned in the file, was never written under the fragment at
// `at`: from where the fragment begins in it, it reads as zeros to its end or the file's.
bool has_unwritten_unit(std::string_view block, std::size_t at, std::size_t unit);

// Whether a whole fragment that begins a record is anywhere at or after `at`.
bool has_record_from(std::string_view block, std::size_t at);

}  // namespace reprise::storage
