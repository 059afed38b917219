// JsonFields: reads the known fields of one JSON object and complains about the rest.
// Errors name the field with its path ("retry.cooldown"), say what was expected, and for an
// unknown field what was probably meant. The first error sticks; finish() returns it.
//
//   JsonFields fields(json, "retry");
//   fields.read("attempts", attempts);
//   fields.read("cooldown", cooldown);
//   REPRISE_TRY(fields.finish());
//
// A field that is absent leaves its target as it was; so does null unless read_nullable is used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/errc.h"
#include "base/json.h"
#include "base/result.h"
#include "base/time.h"

namespace reprise {

class JsonFields {
 public:
  // `path` prefixes field names in messages; empty at the top.
  explicit JsonFields(const Json& object, std::string path = {});

  // Each returns true when the field was there, not null, and well formed.
  bool read(std::string_view name, std::string& out);
  bool read(std::string_view name, bool& out);
  bool read(std::string_view name, std::uint32_t& out);
  bool read(std::string_view name, std::uint64_t& out);
  bool read(std::string_view name, double& out);
  bool read(std::string_view name, Duration& out);  // text, or a number of seconds
  template <class T>
  bool read(std::string_view name, std::optional<T>& out) {
    T value{};
    if (!read(name, value)) return false;
    out = std::move(value);
    return true;
  }
  // Like read; null resets `out` to nothing.
  template <class T>
  bool read_nullable(std::string_view name, std::optional<T>& out) {
    if (const Json* found = peek(name); found != nullptr && found->is_null()) {
      out.reset();
      return true;
    }
    return read(name, out);
  }
  // Like read; null sets `out` to `fallback`.
  template <class T>
  void read_or_default(std::string_view name, T& out, const T& fallback) {
    if (const Json* found = peek(name); found != nullptr && found->is_null()) {
      out = fallback;
    } else {
      read(name, out);
    }
  }
  // The raw value of a known field, or null when absent.
  const Json* peek(std::string_view name);

  // Sets an error for a field from outside, e.g. a range check.
  void fail(std::string_view name, std::string problem, Errc code = Errc::invalid_field);
  bool ok() const { return !error_.has_value(); }

  // The first error: unknown fields count too. Call it last.
  Status finish();

 private:
  const Json* take(std::string_view name);
  std::string full_name(std::string_view name) const;
  void wrong_kind(std::string_view name, std::string_view expected, const Json& got);

  const Json::Object* object_ = nullptr;
  std::string path_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace reprise
