#include "model/payload_vars.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/json_view.h"

namespace reprise {
namespace {

constexpr auto kNone = static_cast<std::size_t>(-1);
// A list of required fields is cut in messages: a refused batch repeats it for each job.
constexpr std::size_t kListedBytes = 1000;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// What may stand in a number or a word.
bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

// Steps over JSON text. Whoever stored it has checked it; what is not JSON after all ends the walk
// and is never read beyond its end.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) { skip_blanks(); }

  std::size_t at() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  char front() const { return at_end() ? '\0' : text_[at_]; }

  // Steps over `c` and the blanks behind it.
  bool take(char c) {
    if (front() != c || at_end()) return false;
    ++at_;
    skip_blanks();
    return true;
  }
  // The next value as it is written, with the blanks behind it stepped over; empty: none.
  std::string_view value() {
    const std::size_t begin = at_;
    if (!skip_value()) return {};
    const std::string_view raw = text_.substr(begin, at_ - begin);
    skip_blanks();
    return raw;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool skip_value() {
    const char first = front();
    if (first == '"') return skip_string();
    if (first == '{' || first == '[') return skip_nested();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
    return at_ > begin;
  }
  bool skip_string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return true;
      }
      if (text_[at_] == '\\') ++at_;
    }
    at_ = text_.size();
    return false;
  }
  // A counter rather than recursion: depth must not cost stack.
  bool skip_nested() {
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!skip_string()) return false;
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        return true;
      }
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<std::uint32_t> hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<std::uint32_t>(lower - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto tail = [&](unsigned shift) {
    out.push_back(static_cast<char>(0x80U | ((point >> shift) & 0x3FU)));
  };
  if (point < 0x80) {
    out.push_back(static_cast<char>(point));
  } else if (point < 0x800) {
    out.push_back(static_cast<char>(0xC0U | (point >> 6U)));
    tail(0);
  } else if (point < 0x10000) {
    out.push_back(static_cast<char>(0xE0U | (point >> 12U)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0U | (point >> 18U)));
    tail(12);
    tail(6);
    tail(0);
  }
}

// \uXXXX, or two of them that are one character; `text` begins behind the first backslash. Returns
// the bytes it took, 0 when it is malformed.
std::size_t append_unicode(std::string& out, std::string_view text) {
  const auto high = hex4(text.substr(1));
  if (!high) return 0;
  if (*high < 0xD800 || *high > 0xDFFF) {
    append_utf8(out, *high);
    return 5;
  }
  if (!text.substr(5).starts_with("\\u")) return 0;
  const auto low = hex4(text.substr(7));
  if (*high > 0xDBFF || !low || *low < 0xDC00 || *low > 0xDFFF) return 0;
  append_utf8(out, 0x10000U + ((*high - 0xD800U) << 10U) + (*low - 0xDC00U));
  return 11;
}

// What stands between the quotes of a string, unescaped. Done here and not by a parser since a
// payload may have a hundred thousand such names. False: malformed.
bool unescape(std::string_view raw, std::string& out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  out.clear();
  while (!raw.empty()) {
    const std::size_t plain = std::min(raw.find('\\'), raw.size());
    out += raw.substr(0, plain);
    raw.remove_prefix(plain);
    if (raw.empty()) break;
    raw.remove_prefix(1);
    if (raw.starts_with('u')) {
      const std::size_t taken = append_unicode(out, raw);
      if (taken == 0) return false;
      raw.remove_prefix(taken);
    } else {
      const std::size_t which = raw.empty() ? std::string_view::npos : kEscapes.find(raw.front());
      if (which == std::string_view::npos) return false;
      out.push_back(kMeanings[which]);
      raw.remove_prefix(1);
    }
  }
  return true;
}

enum class Seen : std::uint8_t { no, null, value };

}  // namespace

struct PayloadVars::Looked {
  bool is_object = false;
  bool has_members = false;
  std::size_t closing_brace = 0;
  std::vector<Seen> seen;  // by the index of the field
};

std::unique_ptr<const PayloadVars> PayloadVars::make(const QueueConfig& config) {
  if (config.vars.empty() && config.defaults.empty()) return nullptr;
  std::unique_ptr<PayloadVars> made(new PayloadVars);
  made->required_ = config.vars;
  for (const std::string& name : config.vars) made->fields_.push_back({name, true, {}, false});
  Walk walk(config.defaults);
  std::vector<std::string> order;
  for (walk.take('{'); walk.front() == '"'; walk.take(',')) {
    const std::string_view name = walk.value();
    if (!walk.take(':')) break;
    const std::string_view value = walk.value();
    Field field{JsonView(name).string_or(""), false, {}, value == "null"};
    field.default_text.append(name).append(":").append(value);
    order.push_back(field.name);
    const auto known = std::ranges::find(config.vars, field.name);
    if (known == config.vars.end()) {
      made->fields_.push_back(std::move(field));
    } else {
      Field& required = made->fields_[static_cast<std::size_t>(known - config.vars.begin())];
      required.default_text = std::move(field.default_text);
      required.default_is_null = field.default_is_null;
    }
  }
  std::ranges::sort(made->fields_, {}, &Field::name);
  for (const std::string& name : order) made->order_.push_back(made->find(name));
  return made;
}

std::size_t PayloadVars::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(fields_, name, {}, &Field::name);
  if (found == fields_.end() || found->name != name) return kNone;
  return static_cast<std::size_t>(found - fields_.begin());
}

PayloadVars::Looked PayloadVars::look_at(std::string_view payload) const {
  Looked looked{.seen = std::vector<Seen>(fields_.size(), Seen::no)};
  Walk walk(payload);
  if (!walk.take('{')) return looked;
  std::string unescaped;
  while (walk.front() == '"') {
    std::string_view name = walk.value();
    if (name.empty() || !walk.take(':')) return looked;
    const std::string_view value = walk.value();
    if (value.empty()) return looked;
    looked.has_members = true;
    name = name.substr(1, name.size() - 2);
    if (name.find('\\') != std::string_view::npos) {
      if (!unescape(name, unescaped)) return looked;
      name = unescaped;
    }
    if (const std::size_t field = find(name); field != kNone) {
      Seen& seen = looked.seen[field];
      if (value == "null") {
        seen = Seen::null;
      } else if (seen == Seen::no) {
        seen = Seen::value;
      }
    }
    if (!walk.take(',')) break;
  }
  looked.closing_brace = walk.at();
  looked.is_object = walk.take('}') && walk.at_end();
  return looked;
}

Status PayloadVars::apply(std::string& payload, PayloadKind kind, std::string_view queue) const {
  if (kind == PayloadKind::bytes) {
    if (required_.empty()) return ok();
    return refusal("the payload is bytes and not a JSON object", queue);
  }
  const Looked looked = look_at(payload);
  if (!looked.is_object) {
    if (required_.empty()) return ok();
    return refusal("the payload is not a JSON object", queue);
  }
  for (const std::string& name : required_) {
    const std::size_t index = find(name);
    const Field& field = fields_[index];
    Seen seen = looked.seen[index];
    if (seen == Seen::no && !field.default_text.empty()) {
      seen = field.default_is_null ? Seen::null : Seen::value;
    }
    if (seen == Seen::value) continue;
    const char* problem =
        seen == Seen::null ? "' is null, which counts as missing" : "' is missing";
    return refusal("field '" + name + problem, queue);
  }
  std::string added;
  for (const std::size_t index : order_) {
    if (looked.seen[index] != Seen::no) continue;
    if (looked.has_members || !added.empty()) added.push_back(',');
    added += fields_[index].default_text;
  }
  if (!added.empty()) payload.insert(looked.closing_brace, added);
  return ok();
}

Error PayloadVars::refusal(std::string_view problem, std::string_view queue) const {
  std::string detail(problem);
  detail.append(": queue '").append(queue).append("' requires ");
  std::size_t listed = 0;
  std::size_t bytes = 0;
  for (; listed < required_.size() && bytes < kListedBytes; ++listed) {
    if (listed > 0) detail += ", ";
    detail += required_[listed];
    bytes += required_[listed].size();
  }
  if (listed < required_.size()) {
    detail += " and " + std::to_string(required_.size() - listed) + " more";
  }
  return {Errc::missing_var, std::move(detail)};
}

}  // namespace reprise
