// The frame that every record has: version u8, body, CRC-32C u32 of all before it. For the encoders
// and decoders of records only.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/result.h"
#include "base/time.h"

namespace reprise::storage {

// Each kind of record has a version of its own; most are still at their first.
using RecordVersion = std::uint8_t;
inline constexpr RecordVersion kFirstVersion = 1;
inline constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
inline constexpr std::size_t kFrameBytes = sizeof(RecordVersion) + kChecksumBytes;
inline Error corrupt_record(std::string_view kind, std::string_view problem) {
  std::string detail;
  detail.append("the stored ").append(kind).append(" record is damaged: ").append(problem);
  return Error{Errc::corrupt, std::move(detail)};
}

inline Error unknown_version(std::string_view kind, unsigned version, RecordVersion known) {
  return corrupt_record(kind, "it has version " + std::to_string(version) +
                                  ", this build reads version " + std::to_string(known));
}

// Sizes, so that a record is allocated once.

inline std::size_t varint_size(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}

inline std::size_t bytes_size(std::size_t length) { return varint_size(length) + length; }

// Writes one record: the frame is its business, the body the caller's. Small fields gather in a
// buffer of its own, since a string looks at its capacity with each of them.
class RecordWriter {
 public:
  explicit RecordWriter(std::size_t record_bytes, RecordVersion version = kFirstVersion) {
    own_.reserve(record_bytes);
    fixed(version);
  }
  // Behind what `out` holds already; end it with seal().
  RecordWriter(std::string& out, RecordVersion version) : out_(out), begin_(out.size()) {
    fixed(version);
  }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  template <std::integral T>
  void fixed(T value) {
    write_fixed(room_for(sizeof(T)), value);
    gathered_ += sizeof(T);
  }
  void varint(std::uint64_t value) {
    char* const at = room_for(kVarintBytesMax);
    gathered_ += static_cast<std::size_t>(write_varint(at, value) - at);
  }
  void bytes(std::string_view value) {
    varint(value.size());
    encoded(value);
  }
  // What is in the form of the record already.
  void encoded(std::string_view value) {
    if (value.size() > buffer_.size() / 2) {
      flush();
      out_.append(value);
      return;
    }
    std::memcpy(room_for(value.size()), value.data(), value.size());
    gathered_ += value.size();
  }
  // The same for a value of this size that `write(out)` appends.
  template <class Write>
  void bytes(std::size_t size, const Write& write) {
    varint(size);
    flush();
    write(out_);
  }
  void time(Timestamp value) { fixed(value.time_since_epoch().count()); }
  template <class Enum>
  void enumerator(Enum value) {
    fixed(static_cast<std::uint8_t>(value));
  }
  void seal() {
    flush();
    fixed(crc32c(std::string_view(out_).substr(begin_)));
    flush();
  }
  std::string finish() {
    seal();
    return std::move(own_);
  }

 private:
  char* room_for(std::size_t size) {
    if (gathered_ + size > buffer_.size()) flush();
    return buffer_.data() + gathered_;
  }
  void flush() {
    out_.append(buffer_.data(), gathered_);
    gathered_ = 0;
  }

  std::string own_;
  std::string& out_ = own_;
  const std::size_t begin_ = 0;
  std::array<char, 256> buffer_;
  std::size_t gathered_ = 0;
};

// Reads one record's body. Like ByteReader it may be read to the end and asked once, in finish().
class RecordReader : public ByteReader {
 public:
  enum class Checksum : std::uint8_t { check, checked_with_frame };
  // `oldest`: the first version that is still read. `checksum`: that of a record inside another
  // need not be checked again.
  static Result<RecordReader> open(std::string_view kind, std::string_view record,
                                   RecordVersion known = kFirstVersion, RecordVersion oldest = 0,
                                   Checksum checksum = Checksum::check) {
    if (record.size() < kFrameBytes) return corrupt_record(kind, "it is too short");
    const std::string_view covered = record.substr(0, record.size() - kChecksumBytes);
    if (checksum == Checksum::check) {
      ByteReader stored(record.substr(covered.size()));
      if (stored.fixed<std::uint32_t>() != crc32c(covered)) {
        return corrupt_record(kind, "its checksum does not match");
      }
    }
    const auto version = static_cast<std::uint8_t>(covered.front());
    const bool is_known = version <= known && version >= (oldest == 0 ? known : oldest);
    if (!is_known) return unknown_version(kind, version, known);
    return RecordReader(kind, version, covered.substr(1));
  }

  RecordVersion version() const { return version_; }

  Timestamp time() { return Timestamp(Duration(fixed<std::int64_t>())); }
  std::uint32_t varint32() {
    const std::uint64_t value = varint();
    in_range_ &= value <= 0xFFFFFFFFU;
    return static_cast<std::uint32_t>(value);
  }
  template <class Enum>
  Enum enumerator(Enum last) {
    const auto value = fixed<std::uint8_t>();
    in_range_ &= value <= static_cast<std::uint8_t>(last);
    return static_cast<Enum>(value);
  }
  std::string text() { return std::string(bytes()); }
  // A count of things that take a byte each at least: damage cannot make it huge.
  std::size_t count() {
    const std::uint64_t value = varint();
    if (value <= rest().size()) return value;
    in_range_ = false;
    return 0;
  }

  Status finish() const {
    if (done() && in_range_) return ok();
    return corrupt_record(kind_, "its fields do not add up");
  }

 private:
  RecordReader(std::string_view kind, RecordVersion version, std::string_view body)
      : ByteReader(body), kind_(kind), version_(version) {}

  std::string_view kind_;
  RecordVersion version_;
  bool in_range_ = true;
};

}  // namespace reprise::storage
