// Reading and writing fixed and variable integers in byte strings.
// Keys use big-endian so that byte order is number order; record bodies use little-endian.
// ByteReader never reads past its end: a read that does not fit sets failed() and yields zero or
// an empty view, so a decoder may read all fields and check once.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace reprise {

// In the machine's order, or back.
template <std::unsigned_integral T>
constexpr T swapped_big_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  return value;
}

template <std::unsigned_integral T>
void write_big_endian(char* to, T value) {
  value = swapped_big_endian(value);
  std::memcpy(to, &value, sizeof(T));
}

template <std::unsigned_integral T>
void append_big_endian(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes;
  write_big_endian(bytes.data(), value);
  out.append(bytes.data(), bytes.size());
}

template <std::unsigned_integral T>
T read_big_endian(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return swapped_big_endian(value);
}

// Little-endian and variable integers where there is room for them; behind them on return.
template <std::integral T>
char* write_fixed(char* to, T value) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(to, &value, sizeof(T));
  return to + sizeof(T);
}

inline constexpr std::size_t kVarintBytesMax = 10;

inline char* write_varint(char* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  template <std::integral T>
  void fixed(T value) {
    static_assert(std::endian::native == std::endian::little);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void varint(std::uint64_t value) {
    std::array<char, kVarintBytesMax> bytes;
    const char* const end = write_varint(bytes.data(), value);
    // At once: a string looks at its capacity each time.
    out_.append(bytes.data(), static_cast<std::size_t>(end - bytes.data()));
  }
  void bytes(std::string_view bytes) {
    varint(bytes.size());
    out_.append(bytes);
  }

 private:
  std::string& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view in) : in_(in) {}

  template <std::integral T>
  T fixed() {
    T value{};
    if (in_.size() < sizeof(T)) return fail<T>();
    std::memcpy(&value, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) return fail<std::uint64_t>();
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      if (shift == 63 && byte > 1) return fail<std::uint64_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return fail<std::uint64_t>();
  }
  std::string_view bytes() {
    const std::uint64_t size = varint();
    if (failed_ || size > in_.size()) return fail<std::string_view>();
    const auto result = in_.substr(0, size);
    in_.remove_prefix(size);
    return result;
  }
  std::string_view rest() const { return in_; }
  bool failed() const { return failed_; }
  // All read and nothing wrong.
  bool done() const { return !failed_ && in_.empty(); }

 private:
  template <class T>
  T fail() {
    failed_ = true;
    in_ = {};
    return T{};
  }

  std::string_view in_;
  bool failed_ = false;
};

}  // namespace reprise
