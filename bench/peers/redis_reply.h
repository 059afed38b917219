// RedisReply: one reply of the Redis protocol (RESP 2), as a flat list of its parts in the order
// in which they stand. The caller knows its shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::bench::peers {

struct RedisPart {
  char type{};            // + - : $ *
  std::string_view text;  // of all but an array
  std::int64_t count{};   // elements of an array; -1: nil
};

class RedisReply {
 public:
  // The bytes of the first reply in `input`, or 0 when it is not whole. Its parts point into it.
  std::size_t read(std::string_view input);

  const RedisPart& operator[](std::size_t at) const { return parts_[at]; }
  std::size_t size() const { return parts_.size(); }

 private:
  std::vector<RedisPart> parts_;
};

// A command as an array of strings.
void append_redis_head(std::string& out, std::size_t words);
void append_redis_word(std::string& out, std::string_view word);
// The length that goes before a word's bytes.
void append_redis_length(std::string& out, std::size_t bytes);

}  // namespace reprise::bench::peers
