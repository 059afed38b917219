#include "storage/batch.h"

#include <array>

#include "base/bytes.h"
#include "base/check.h"

namespace reprise::storage {
namespace {

// One mutation: tag u8 (kind in the high half, keyspace in the low), then its byte strings.
enum class Kind : std::uint8_t { put = 1, erase = 2, erase_range = 3 };

std::uint8_t tag(Kind kind, Keyspace keyspace) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(kind) << 4 |
                                   static_cast<unsigned>(keyspace));
}

// Tag and key; those of jobs, which most are, in one step.
void append_head(std::string& bytes, std::uint8_t tag, std::string_view key) {
  constexpr std::size_t kShort = 30;  // less than a varint's first byte can tell
  if (key.size() > kShort) {
    ByteWriter out(bytes);
    out.fixed(tag);
    return out.bytes(key);
  }
  std::array<char, 2 + kShort> head;
  head[0] = static_cast<char>(tag);
  head[1] = static_cast<char>(key.size());
  key.copy(head.data() + 2, key.size());
  bytes.append(head.data(), 2 + key.size());
}

}  // namespace

void Batch::put(Keyspace keyspace, std::string_view key, std::string_view value) {
  begin_put(keyspace, key, value.size());
  bytes_.append(value);
}

void Batch::begin_put(Keyspace keyspace, std::string_view key, std::size_t size) {
  append_head(bytes_, tag(Kind::put, keyspace), key);
  ByteWriter(bytes_).varint(size);
  ++count_;
}

void Batch::erase(Keyspace keyspace, std::string_view key) {
  append_head(bytes_, tag(Kind::erase, keyspace), key);
  ++count_;
}

void Batch::erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) {
  if (begin >= end) return;
  ByteWriter out(bytes_);
  out.fixed(tag(Kind::erase_range, keyspace));
  out.bytes(begin);
  out.bytes(end);
  ++count_;
}

void Batch::clear() {
  bytes_.clear();
  count_ = 0;
}

void Batch::visit(Visitor& visitor) const {
  const bool whole = visit(bytes_, count_, visitor);
  REPRISE_CHECK(whole);
}

bool Batch::visit(std::string_view bytes, std::size_t count, Visitor& visitor) {
  ByteReader in(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const auto tagged = in.fixed<std::uint8_t>();
    const auto keyspace = static_cast<Keyspace>(tagged & 0x0F);
    const auto kind = static_cast<Kind>(tagged >> 4);
    if (static_cast<std::size_t>(keyspace) >= kAllKeyspaces.size()) return false;
    const std::string_view first = in.bytes();
    const std::string_view second = kind == Kind::erase ? std::string_view() : in.bytes();
    if (in.failed()) return false;
    switch (kind) {
      case Kind::put:
        visitor.put(keyspace, first, second);
        break;
      case Kind::erase:
        visitor.erase(keyspace, first);
        break;
      case Kind::erase_range:
        visitor.erase_range(keyspace, first, second);
        break;
      default:
        return false;
    }
  }
  return in.done();
}

}  // namespace reprise::storage
