// Json: a parsed JSON value as plain data, for small documents (requests, settings, replies).
// Parsing is strict: UTF-8, one value, no trailing text, nesting up to kMaxJsonDepth.
// Push bodies do not take this road: server/push_body keeps their payloads as the bytes that came.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace reprise {

class JsonWriter;

inline constexpr std::size_t kMaxJsonDepth = 64;

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;  // in the order of the text

  Json() = default;  // null
  explicit Json(std::same_as<bool> auto value) : value_(value) {}
  explicit Json(std::signed_integral auto value) : value_(std::int64_t{value}) {}
  explicit Json(std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>)
      : value_(std::uint64_t{value}) {}
  explicit Json(double value) : value_(value) {}
  explicit Json(const char* value) : value_(std::string(value)) {}
  explicit Json(std::string_view value) : value_(std::string(value)) {}
  explicit Json(std::string value) : value_(std::move(value)) {}
  explicit Json(Array value) : value_(std::move(value)) {}
  explicit Json(Object value) : value_(std::move(value)) {}

  // Errc::invalid_request, with the position, when `text` is not strict JSON or nests too deep.
  static Result<Json> parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // Null pointers when the value is of another kind.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const Array* array() const { return std::get_if<Array>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  // Any number, whole or not.
  std::optional<double> number() const;
  // A whole number that fits; 3.0 counts.
  std::optional<std::int64_t> integer() const;
  std::optional<std::uint64_t> unsigned_integer() const;

  // The member of an object; null when there is none or this is no object.
  const Json* find(std::string_view name) const;
  // Follows find() and gives a shared null value instead of a null pointer: doc["a"]["b"].
  const Json& operator[](std::string_view name) const;
  // The string, or `fallback` when it is none.
  std::string string_or(std::string_view fallback) const;

  // "null", "a boolean", "a number", "a string", "an array", "an object": for messages.
  std::string_view kind_name() const;
  void write(JsonWriter& out) const;
  std::string dump() const;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

}  // namespace reprise
