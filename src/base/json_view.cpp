#include "base/json_view.h"

#include <cstddef>

#include "base/json.h"

namespace reprise {
namespace {

constexpr auto kMalformed = std::string_view::npos;
constexpr std::string_view kSpace = " \t\r\n";

std::size_t skip_space(std::string_view text, std::size_t at) {
  const std::size_t found = text.find_first_not_of(kSpace, at);
  return found == std::string_view::npos ? text.size() : found;
}

// `at` is the opening quote; returns the position behind the closing one.
std::size_t skip_string(std::string_view text, std::size_t at) {
  for (++at;;) {
    at = text.find_first_of("\"\\", at);
    if (at == std::string_view::npos) return kMalformed;
    if (text[at] == '"') return at + 1;
    at += 2;
  }
}

// A loop and a counter rather than recursion: depth must not cost stack.
std::size_t skip_nested(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (true) {
    at = text.find_first_of("\"{}[]", at);
    if (at == std::string_view::npos) return kMalformed;
    if (text[at] == '"') {
      at = skip_string(text, at);
      if (at == kMalformed) return kMalformed;
      continue;
    }
    const bool opens = text[at] == '{' || text[at] == '[';
    ++at;
    if (opens) {
      ++depth;
    } else if (--depth == 0) {
      return at;
    }
  }
}

// Returns the position behind the value that begins at `at`.
std::size_t skip_value(std::string_view text, std::size_t at) {
  if (at >= text.size()) return kMalformed;
  if (text[at] == '"') return skip_string(text, at);
  if (text[at] == '{' || text[at] == '[') return skip_nested(text, at);
  const std::size_t end = std::min(text.find_first_of(" \t\r\n,:]}", at), text.size());
  return end == at ? kMalformed : end;
}

// Walks over what stands between the brackets of an object or array.
class Items {
 public:
  explicit Items(std::string_view text) : text_(text), at_(skip_space(text, 1)) {}

  // The next value, or an empty view at the end.
  std::string_view next_value() {
    const std::size_t end = skip_value(text_, at_);
    if (end == kMalformed) return {};
    const auto value = text_.substr(at_, end - at_);
    at_ = skip_space(text_, end);
    return value;
  }
  // Steps over one `,` or `:`.
  bool skip_separator(char separator) {
    if (at_ >= text_.size() || text_[at_] != separator) return false;
    at_ = skip_space(text_, at_ + 1);
    return true;
  }

 private:
  std::string_view text_;
  std::size_t at_;
};

std::string decode_string(std::string_view raw) {
  if (raw.find('\\') == std::string_view::npos) return std::string(raw.substr(1, raw.size() - 2));
  const auto parsed = Json::parse(raw);
  return parsed ? parsed->string_or("") : std::string();
}

// Calls visit(raw name, raw value) until it returns false.
template <class Visit>
void for_each_member(std::string_view object, Visit visit) {
  Items items(object);
  while (true) {
    const auto name = items.next_value();
    if (!name.starts_with('"') || !items.skip_separator(':')) return;
    const auto value = items.next_value();
    if (value.empty() || !visit(name, value)) return;
    if (!items.skip_separator(',')) return;
  }
}

}  // namespace

JsonView::JsonView(std::string_view text) {
  const std::size_t begin = skip_space(text, 0);
  const std::size_t end = skip_value(text, begin);
  if (end == kMalformed || skip_space(text, end) != text.size()) return;
  raw_ = text.substr(begin, end - begin);
}

JsonView JsonView::operator[](std::string_view name) const {
  JsonView found;
  if (!is_object()) return found;
  for_each_member(raw_, [&](std::string_view raw_name, std::string_view value) {
    if (decode_string(raw_name) != name) return true;
    found.raw_ = value;
    return false;
  });
  return found;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  std::vector<std::pair<std::string, JsonView>> all;
  if (!is_object()) return all;
  for_each_member(raw_, [&](std::string_view name, std::string_view value) {
    JsonView view;
    view.raw_ = value;
    all.emplace_back(decode_string(name), view);
    return true;
  });
  return all;
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> all;
  if (!is_array()) return all;
  Items items(raw_);
  do {
    const auto value = items.next_value();
    if (value.empty()) break;
    all.emplace_back().raw_ = value;
  } while (items.skip_separator(','));
  return all;
}

std::string JsonView::string_or(std::string_view fallback) const {
  return is_string() ? decode_string(raw_) : std::string(fallback);
}

std::optional<double> JsonView::number() const {
  if (raw_.empty()) return std::nullopt;
  const auto parsed = is_object() || is_array() ? Result<Json>(Json()) : Json::parse(raw_);
  return parsed ? parsed->number() : std::nullopt;
}

std::optional<std::uint64_t> JsonView::unsigned_integer() const {
  if (raw_.empty() || is_object() || is_array()) return std::nullopt;
  const auto parsed = Json::parse(raw_);
  return parsed ? parsed->unsigned_integer() : std::nullopt;
}

}  // namespace reprise
