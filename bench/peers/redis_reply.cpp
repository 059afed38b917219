#include "peers/redis_reply.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "load_error.h"

namespace reprise::bench::peers {
namespace {

constexpr std::string_view kRespLineEnd = "\r\n";

std::int64_t count_of(std::string_view text) {
  std::int64_t count = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), count);
  if (result.ec != std::errc{}) throw LoadError(fmt::format("a reply with the count '{}'", text));
  return count;
}

// Reads the part at `at` and moves on; false when it is not whole.
bool read_part(std::string_view input, std::size_t& at, RedisPart& part) {
  const std::size_t end = input.find(kRespLineEnd, at);
  if (end == std::string_view::npos) return false;
  part.type = input[at];
  part.text = input.substr(at + 1, end - at - 1);
  at = end + kRespLineEnd.size();
  if (part.type == '*') part.count = count_of(part.text);
  if (part.type != '$') return true;
  const std::int64_t bytes = count_of(part.text);
  part.count = bytes < 0 ? -1 : 0;
  part.text = {};
  if (bytes < 0) return true;
  const auto size = static_cast<std::size_t>(bytes);
  if (input.size() < at + size + kRespLineEnd.size()) return false;
  part.text = input.substr(at, size);
  at += size + kRespLineEnd.size();
  return true;
}

}  // namespace

std::size_t RedisReply::read(std::string_view input) {
  parts_.clear();
  std::size_t at = 0;
  for (std::int64_t left = 1; left > 0; left--) {
    RedisPart part;
    if (at >= input.size() || !read_part(input, at, part)) return 0;
    if (part.type == '*' && part.count > 0) left += part.count;
    parts_.push_back(part);
  }
  return at;
}

void append_redis_head(std::string& out, std::size_t words) {
  fmt::format_to(std::back_inserter(out), "*{}\r\n", words);
}

void append_redis_length(std::string& out, std::size_t bytes) {
  fmt::format_to(std::back_inserter(out), "${}\r\n", bytes);
}

void append_redis_word(std::string& out, std::string_view word) {
  append_redis_length(out, word.size());
  out += word;
  out += kRespLineEnd;
}

}  // namespace reprise::bench::peers
