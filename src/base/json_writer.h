// JsonWriter: builds JSON text in one string, front to back. Commas and quotes are its business;
// the caller opens and closes in order. Text that is not UTF-8 comes out with U+FFFD in place of
// each bad byte, so that the result is always valid JSON.
//
//   JsonWriter json;
//   json.begin_object().key("id").value(id).key("tags").begin_array().value("a").end_array();
//   json.end_object();  json.take()
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace reprise {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto flag) { return raw(flag ? "true" : "false"); }
  JsonWriter& value(std::integral auto number) requires(!std::same_as<decltype(number), bool>) {
    return integer(static_cast<std::int64_t>(number), std::unsigned_integral<decltype(number)>);
  }
  JsonWriter& value(double number);  // NaN and infinities become null
  JsonWriter& null() { return raw("null"); }
  // `json` is spliced in as it is: it must be one valid JSON value.
  JsonWriter& raw(std::string_view json);

  std::string_view text() const { return out_; }
  std::string take() { return std::move(out_); }
  void reserve(std::size_t bytes) { out_.reserve(bytes); }

 private:
  JsonWriter& integer(std::int64_t bits, bool is_unsigned);
  void separate();

  std::string out_;
  bool needs_comma_ = false;
};

// `text` as a JSON string, quotes included, appended to `out`.
void append_json_string(std::string& out, std::string_view text);

}  // namespace reprise
