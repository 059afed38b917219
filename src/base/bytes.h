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

template <std::unsigned_integral T>
void append_big_endian(std::string& out, T value) {
  std::array<char, sizeof(T)> bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  }
  out.append(bytes.data(), bytes.size());
}

template <std::unsigned_integral T>
T read_big_endian(const char* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8) | static_cast<unsigned char>(from[i]);
  }
  return value;
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
    std::array<char, 10> bytes;
    std::size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<char>(value | 0x80);
    bytes[size++] = static_cast<char>(value);
    out_.append(bytes.data(), size);  // at once: a string looks at its capacity each time
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
