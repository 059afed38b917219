#include "hooks/host/clean_text.h"

#include "base/text.h"

namespace reprise::hooks {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kMore = "...";

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

std::string clean_text(std::string_view text, std::size_t max_bytes) {
  std::string clean;
  std::size_t room_for_more = 0;  // the longest part that leaves room for kMore
  while (!text.empty()) {
    const std::size_t size = utf8_character_bytes(text);
    std::string_view next = size == 0 ? kReplacement : text.substr(0, size);
    if (size == 1 && is_control(text.front())) next = " ";
    if (clean.size() + next.size() > max_bytes) {
      clean.resize(room_for_more);
      clean += kMore;
      break;
    }
    clean += next;
    if (clean.size() + kMore.size() <= max_bytes) room_for_more = clean.size();
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return clean;
}

}  // namespace reprise::hooks
