#include "storage/durable/salvage_cursor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/ids.h"
#include "storage/keyspace.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::Slice;

// Keys of queue and number are all there is to them; of others so much counts.
constexpr std::size_t kNumberKeyBytes = sizeof(QueueNumber) + sizeof(Seq);
constexpr std::size_t kTextKeyBytes = 64;

bool has_text_keys(std::string_view family) {
  return family == keyspace_name(Keyspace::keys) || family == keyspace_name(Keyspace::queues) ||
         family == keyspace_name(Keyspace::meta);
}

// Keys as numbers: big-endian, of a fixed number of bytes.

std::string number_of(std::string_view key, std::size_t bytes) {
  std::string number(key.substr(0, bytes));
  number.resize(bytes);
  return number;
}

// nullopt: beyond the largest.
std::optional<std::string> plus_power_of_two(std::string number, std::size_t exponent) {
  unsigned carry = 1U << (exponent % 8);
  for (std::size_t at = number.size() - 1 - exponent / 8;; --at) {
    carry += static_cast<unsigned char>(number[at]);
    number[at] = static_cast<char>(carry & 0xFF);
    carry >>= 8;
    if (carry == 0) return number;
    if (at == 0) return std::nullopt;
  }
}

// Rounded down.
std::string middle(const std::string& low, const std::string& high) {
  std::string sum(low.size() + 1, '\0');
  unsigned carry = 0;
  for (std::size_t at = low.size(); at-- > 0;) {
    carry += static_cast<unsigned char>(low[at]) + static_cast<unsigned char>(high[at]);
    sum[at + 1] = static_cast<char>(carry & 0xFF);
    carry >>= 8;
  }
  sum[0] = static_cast<char>(carry);
  std::string half(low.size(), '\0');
  for (std::size_t at = 0; at < half.size(); ++at) {
    const unsigned two =
        static_cast<unsigned char>(sum[at]) << 8U | static_cast<unsigned char>(sum[at + 1]);
    half[at] = static_cast<char>(two >> 1 & 0xFF);
  }
  return half;
}

class IteratorCursor final : public SkippingCursor {
 public:
  IteratorCursor(std::unique_ptr<::rocksdb::Iterator> iterator, std::string_view family,
                 DamageLog& damage, std::unique_ptr<HoleReader> holes)
      : iterator_(std::move(iterator)),
        family_(family),
        key_bytes_(has_text_keys(family) ? kTextKeyBytes : kNumberKeyBytes),
        damage_(damage),
        holes_(std::move(holes)) {
    seek({});
  }

  bool valid() const override { return in_hole_ || iterator_->Valid(); }
  std::string_view key() const override {
    return in_hole_ ? holes_->key() : view(iterator_->key());
  }
  std::string_view value() const override {
    return in_hole_ ? holes_->value() : view(iterator_->value());
  }
  bool doubtful() const override { return in_hole_ && holes_->doubtful(); }
  Status status() const override { return ok(); }

  void next() override {
    if (in_hole_) {
      holes_->next();
      in_hole_ = holes_->valid();  // the iterator stands behind it
      return;
    }
    place_.assign(key());
    iterator_->Next();
    if (is_unreadable()) pass(place_ + '\0');
  }
  void seek(std::string_view key) override {
    in_hole_ = false;
    place_ = key;
    iterator_->Seek(Slice(place_));
    if (is_unreadable()) pass(place_);
  }

 private:
  static std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

  bool is_unreadable() const { return !iterator_->Valid() && !iterator_->status().ok(); }
  bool is_readable_from(const std::string& key) {
    iterator_->Seek(Slice(key));
    return !is_unreadable();
  }

  // The iterator goes behind the unreadable place, the cursor to what is beside it.
  void pass(const std::string& from) {
    damage_.lost(family_ + ": " + describe(iterator_->status()));
    const auto readable = find_readable();
    const std::string until = readable.value_or(std::string());
    iterator_->Seek(Slice(readable ? until : std::string(key_bytes_ + 1, '\xFF')));
    if (!holes_) return;
    holes_->enter(from, until);
    in_hole_ = holes_->valid();
  }

  // nullopt: up to the end nothing is.
  std::optional<std::string> find_readable() {
    const std::string start = number_of(place_, key_bytes_);
    std::string unreadable = start;
    std::optional<std::string> readable;
    for (std::size_t exponent = 0; exponent < 8 * key_bytes_ && !readable; ++exponent) {
      auto further = plus_power_of_two(start, exponent);
      if (!further) return std::nullopt;
      if (is_readable_from(*further)) {
        readable = std::move(further);
      } else {
        unreadable = *std::move(further);
      }
    }
    if (!readable) return std::nullopt;
    for (std::string between = middle(unreadable, *readable); between != unreadable;
         between = middle(unreadable, *readable)) {
      (is_readable_from(between) ? *readable : unreadable) = between;
    }
    return readable;
  }

  const std::unique_ptr<::rocksdb::Iterator> iterator_;
  const std::string family_;
  const std::size_t key_bytes_;
  DamageLog& damage_;
  const std::unique_ptr<HoleReader> holes_;
  std::string place_;     // what was asked for last
  bool in_hole_ = false;  // the key is the hole reader's, and the iterator's is behind it
};

}  // namespace

std::unique_ptr<SkippingCursor> make_skipping_cursor(std::unique_ptr<::rocksdb::Iterator> iterator,
                                                     std::string_view family, DamageLog& damage,
                                                     std::unique_ptr<HoleReader> holes) {
  return std::make_unique<IteratorCursor>(std::move(iterator), family, damage, std::move(holes));
}

}  // namespace reprise::storage
