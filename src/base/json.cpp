#include "base/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/json_problem.h"
#include "base/json_writer.h"

namespace reprise {
namespace {

namespace dom = simdjson::dom;

// A parser keeps its buffers; one that has seen a document above this size is not kept.
constexpr std::size_t kKeptParserBytes = 1 << 20;

bool is_number_char(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

template <class T>
bool fits(std::string_view digits) {
  T value{};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return parsed.ec == std::errc{};
}

bool is_big_integer(std::string_view token) {
  if (token.find_first_of(".eE") != std::string_view::npos) return false;
  return !fits<std::int64_t>(token) && !fits<std::uint64_t>(token);
}

std::size_t string_token_bytes(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size());
}

// simdjson refuses whole numbers beyond 64 bits; JSON does not. Written with a fraction they are
// doubles to it. Text that is no JSON stays no JSON.
std::string respell_big_integers(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    std::size_t size = 1;
    bool big = false;
    if (text.front() == '"') {
      size = string_token_bytes(text);
    } else if (is_number_char(text.front())) {
      while (size < text.size() && is_number_char(text[size])) ++size;
      big = is_big_integer(text.substr(0, size));
    }
    result += text.substr(0, size);
    if (big) result += ".0";
    text.remove_prefix(size);
  }
  return result;
}

Error syntax_error(std::string_view text, simdjson::error_code code) {
  if (const auto found = find_json_problem(text)) {
    return Error{Errc::invalid_request, fmt::format("not valid JSON: {} at {}", found->problem,
                                                    describe_position(text, found->offset))};
  }
  return Error{Errc::invalid_request,
               fmt::format("not valid JSON: {}", simdjson::error_message(code))};
}

// The name that occurs twice, if any. Sorted rather than compared pair by pair: a hostile object
// may have a hundred thousand members.
const std::string* duplicate_name(const Json::Object& members) {
  std::vector<const std::string*> names;
  names.reserve(members.size());
  for (const auto& [name, value] : members) names.push_back(&name);
  const auto by_text = [](const std::string* name) -> const std::string& { return *name; };
  std::ranges::sort(names, {}, by_text);
  const auto found = std::ranges::adjacent_find(names, {}, by_text);
  return found == names.end() ? nullptr : *found;
}

// Copies simdjson's view of a document into plain data. `depth` counts the containers around a
// value; simdjson counts an empty one differently, so its limit is one wider and ours decides.
class Converter {
 public:
  explicit Converter(std::string_view text) : text_(text) {}

  // Each get follows a look at the type, so none can fail.
  Result<Json> convert(dom::element element, std::size_t depth = 0) const {
    switch (element.type()) {
      case dom::element_type::ARRAY:
        return convert_array(element.get_array().value_unsafe(), depth + 1);
      case dom::element_type::OBJECT:
        return convert_object(element.get_object().value_unsafe(), depth + 1);
      case dom::element_type::INT64:
        return Json(element.get_int64().value_unsafe());
      case dom::element_type::UINT64:
        return Json(element.get_uint64().value_unsafe());
      case dom::element_type::DOUBLE:
        return Json(element.get_double().value_unsafe());
      case dom::element_type::STRING:
        return Json(element.get_string().value_unsafe());
      case dom::element_type::BOOL:
        return Json(element.get_bool().value_unsafe());
      case dom::element_type::NULL_VALUE:
        return Json();
    }
    return Json();
  }

 private:
  Result<Json> convert_array(dom::array array, std::size_t depth) const {
    if (depth > kMaxJsonDepth) return syntax_error(text_, simdjson::DEPTH_ERROR);
    Json::Array result;
    for (const dom::element element : array) {
      auto value = convert(element, depth);
      if (!value) return value;
      result.push_back(std::move(*value));
    }
    return Json(std::move(result));
  }

  Result<Json> convert_object(dom::object object, std::size_t depth) const {
    if (depth > kMaxJsonDepth) return syntax_error(text_, simdjson::DEPTH_ERROR);
    Json::Object result;
    for (const auto& [name, element] : object) {
      auto value = convert(element, depth);
      if (!value) return value;
      result.emplace_back(std::string(name), std::move(*value));
    }
    if (const std::string* name = duplicate_name(result)) {
      return Error{Errc::invalid_request, fmt::format("duplicate field '{}'", *name)};
    }
    return Json(std::move(result));
  }

  std::string_view text_;
};

Result<Json> parse_with(dom::parser& parser, std::string_view text) {
  // The limit is a property of the buffers: it must be there before the first parse makes them.
  constexpr std::size_t kParserDepth = kMaxJsonDepth + 1;
  if (parser.max_depth() != kParserDepth) {
    const auto code = parser.allocate(text.size(), kParserDepth);
    if (code != simdjson::SUCCESS) return syntax_error(text, code);
  }
  dom::element root;
  // parse() copies into a padded buffer of its own, as `text` ends wherever it ends.
  const auto code = parser.parse(text.data(), text.size()).get(root);
  if (code == simdjson::SUCCESS) return Converter(text).convert(root);
  if (code != simdjson::NUMBER_ERROR) return syntax_error(text, code);
  const std::string respelled = respell_big_integers(text);
  if (parser.parse(respelled.data(), respelled.size()).get(root) != simdjson::SUCCESS)
    return syntax_error(text, code);
  return Converter(text).convert(root);
}

// A double that is a whole number, as T if it fits. 2^63 and 2^64 are exact as doubles, one less is
// not, hence the half-open range.
template <class T>
std::optional<T> whole(double number) {
  const double below = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double least = std::numeric_limits<T>::is_signed ? -below : 0.0;
  if (!(number >= least && number < below) || std::trunc(number) != number) return std::nullopt;
  return static_cast<T>(number);
}

}  // namespace

Result<Json> Json::parse(std::string_view text) {
  // An empty view may point nowhere, and simdjson copies from where it points.
  if (text.empty()) return syntax_error(text, simdjson::EMPTY);
  if (text.size() > kKeptParserBytes) {
    dom::parser parser;
    return parse_with(parser, text);
  }
  static thread_local dom::parser parser;
  return parse_with(parser, text);
}

std::optional<double> Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::int64_t> Json::integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) {
    if (std::in_range<std::int64_t>(*value)) return static_cast<std::int64_t>(*value);
    return std::nullopt;
  }
  if (const auto* value = std::get_if<double>(&value_)) return whole<std::int64_t>(*value);
  return std::nullopt;
}

std::optional<std::uint64_t> Json::unsigned_integer() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) {
    if (*value >= 0) return static_cast<std::uint64_t>(*value);
    return std::nullopt;
  }
  if (const auto* value = std::get_if<double>(&value_)) return whole<std::uint64_t>(*value);
  return std::nullopt;
}

const Json* Json::find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, name, &Member::first);
  return found == members->end() ? nullptr : &found->second;
}

const Json& Json::operator[](std::string_view name) const {
  static const Json null;
  const Json* found = find(name);
  return found == nullptr ? null : *found;
}

std::string Json::string_or(std::string_view fallback) const {
  const std::string* text = string();
  return text == nullptr ? std::string(fallback) : *text;
}

std::string_view Json::kind_name() const {
  if (is_null()) return "null";
  if (boolean() != nullptr) return "a boolean";
  if (string() != nullptr) return "a string";
  if (array() != nullptr) return "an array";
  if (object() != nullptr) return "an object";
  return "a number";
}

void Json::write(JsonWriter& out) const {
  if (is_null()) {
    out.null();
  } else if (const Array* elements = array()) {
    out.begin_array();
    for (const Json& element : *elements) element.write(out);
    out.end_array();
  } else if (const Object* members = object()) {
    out.begin_object();
    for (const auto& [name, value] : *members) value.write(out.key(name));
    out.end_object();
  } else if (const bool* flag = boolean()) {
    out.value(*flag);
  } else if (const std::string* text = string()) {
    out.value(*text);
  } else if (const auto* whole_number = std::get_if<std::int64_t>(&value_)) {
    out.value(*whole_number);
  } else if (const auto* big_number = std::get_if<std::uint64_t>(&value_)) {
    out.value(*big_number);
  } else if (const auto* real_number = std::get_if<double>(&value_)) {
    out.value(*real_number);
  }
}

std::string Json::dump() const {
  JsonWriter out;
  write(out);
  return out.take();
}

}  // namespace reprise
