#include "worker/output_tail.h"

#include "base/text.h"

namespace reprise::worker {
namespace {

// From the last `max_lines` lines on.
std::string_view last_lines(std::string_view text, std::size_t max_lines) {
  std::size_t at = text.size();
  for (std::size_t lines = 0; lines < max_lines; ++lines) {
    at = at == 0 ? text.npos : text.rfind('\n', at - 1);
    if (at == text.npos) return text;
  }
  return text.substr(at + 1);
}

// Without what is left of a line, or of a character, whose beginning is missing.
std::string_view without_broken_start(std::string_view text) {
  if (const std::size_t line_end = text.find('\n'); line_end != text.npos) {
    return text.substr(line_end + 1);
  }
  constexpr std::size_t kLongestRest = 3;
  std::size_t start = 0;
  while (start < kLongestRest && start < text.size() &&
         (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) {
    ++start;
  }
  return text.substr(start);
}

std::string as_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_character_bytes(text);
    if (bytes == 0) {
      clean.push_back('?');
    } else {
      clean.append(text.substr(0, bytes));
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return clean;
}

}  // namespace

void OutputTail::append(std::string_view bytes) {
  if (bytes.size() > max_bytes_) {
    cut_ = true;
    kept_.clear();
    bytes.remove_prefix(bytes.size() - max_bytes_);
  }
  kept_.append(bytes);
  if (kept_.size() <= 2 * max_bytes_) return;
  cut_ = true;
  kept_.erase(0, kept_.size() - max_bytes_);
}

std::string OutputTail::text() const {
  std::string_view text = kept_;
  text = text.substr(0, text.find_last_not_of("\r\n") + 1);
  const bool too_long = text.size() > max_bytes_;
  if (too_long) text.remove_prefix(text.size() - max_bytes_);
  if (too_long || cut_) text = without_broken_start(text);
  return as_utf8(last_lines(text, max_lines_));
}

}  // namespace reprise::worker
