// Batch: mutations that become visible and durable together or not at all, kept as one flat byte
// string: the form in which the journal wants it.
// Order counts: a later mutation of the same key wins.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/check.h"
#include "storage/keyspace.h"

namespace reprise::storage {

class Batch {
 public:
  void put(Keyspace keyspace, std::string_view key, std::string_view value);
  // A value of this size that `write(bytes)` appends: a large one need not be copied.
  template <class Write>
  void put(Keyspace keyspace, std::string_view key, std::size_t size, const Write& write) {
    begin_put(keyspace, key, size);
    const std::size_t begin = bytes_.size();
    write(bytes_);
    REPRISE_CHECK(bytes_.size() == begin + size);
  }
  void erase(Keyspace keyspace, std::string_view key);
  // Everything in [begin, end); nothing when end <= begin. Meant for a whole queue: each one costs
  // every reader a little until it is compacted away.
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end);

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  std::size_t byte_size() const { return bytes_.size(); }
  void clear();
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

  // Receives a batch's mutations in order.
  class Visitor {
   public:
    virtual ~Visitor() = default;
    virtual void put(Keyspace keyspace, std::string_view key, std::string_view value) = 0;
    virtual void erase(Keyspace keyspace, std::string_view key) = 0;
    virtual void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) = 0;
  };
  void visit(Visitor& visitor) const;

  // The mutations as bytes, which is how a journal keeps them, and back: false when they are not
  // `count` whole mutations. What is visited then is of no use.
  std::string_view bytes() const { return bytes_; }
  [[nodiscard]] static bool visit(std::string_view bytes, std::size_t count, Visitor& visitor);

 private:
  void begin_put(Keyspace keyspace, std::string_view key, std::size_t size);

  std::string bytes_;
  std::size_t count_ = 0;
};

}  // namespace reprise::storage
