#include "storage/batch.h"

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

}  // namespace

void Batch::put(Keyspace keyspace, std::string_view key, std::string_view value) {
  ByteWriter out(bytes_);
  out.fixed(tag(Kind::put, keyspace));
  out.bytes(key);
  out.bytes(value);
  ++count_;
}

void Batch::erase(Keyspace keyspace, std::string_view key) {
  ByteWriter out(bytes_);
  out.fixed(tag(Kind::erase, keyspace));
  out.bytes(key);
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
  ByteReader in(bytes_);
  for (std::size_t i = 0; i < count_; ++i) {
    const auto tagged = in.fixed<std::uint8_t>();
    const auto keyspace = static_cast<Keyspace>(tagged & 0x0F);
    const std::string_view key = in.bytes();
    switch (static_cast<Kind>(tagged >> 4)) {
      case Kind::put:
        visitor.put(keyspace, key, in.bytes());
        break;
      case Kind::erase:
        visitor.erase(keyspace, key);
        break;
      case Kind::erase_range:
        visitor.erase_range(keyspace, key, in.bytes());
        break;
    }
  }
  REPRISE_CHECK(in.done());
}

}  // namespace reprise::storage
