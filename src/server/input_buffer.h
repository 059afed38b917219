// InputBuffer: bytes read from a socket and not yet used up, in one piece of memory.
// prepare() may move the bytes, so nobody may hold a view of them, and no read may be under way
// into the space of an earlier prepare(), when it is called.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace reprise::server {

class InputBuffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  std::size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::size_t capacity() const { return capacity_; }

  // Free space of at least `bytes`. Grows by doubling.
  std::span<char> prepare(std::size_t bytes) {
    if (empty()) begin_ = end_ = 0;
    if (capacity_ - end_ < bytes) make_room(bytes);
    return {data_.get() + end_, capacity_ - end_};
  }
  void commit(std::size_t bytes) { end_ += bytes; }
  void consume(std::size_t bytes) { begin_ += bytes; }
  void append(std::string_view bytes) {
    std::memcpy(prepare(bytes.size()).data(), bytes.data(), bytes.size());
    commit(bytes.size());
  }

  // Gives all memory back; the bytes are gone.
  void reset() { *this = InputBuffer(); }

 private:
  void make_room(std::size_t bytes) {
    const std::size_t used = size();
    if (capacity_ - used >= bytes && begin_ >= capacity_ / 2) {
      std::memmove(data_.get(), data_.get() + begin_, used);
    } else {
      capacity_ = std::max(used + bytes, capacity_ * 2);
      std::unique_ptr<char[]> grown(new char[capacity_]);
      if (used > 0) std::memcpy(grown.get(), data_.get() + begin_, used);
      data_ = std::move(grown);
    }
    begin_ = 0;
    end_ = used;
  }

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace reprise::server
