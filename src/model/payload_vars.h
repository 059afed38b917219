// PayloadVars: what a queue asks of a payload before it takes it: fields that must be there
// (`vars`) and fields that are added when they are not (`defaults`).
//
// A payload is looked through once, and only at its top level. What was given stays byte for byte:
// defaults are written before its closing brace, in their own order. A field that is null is there,
// so no default takes its place, and is missing all the same. Of a name that occurs twice every
// value must be something, because readers differ in which of them counts.
//
// A value that never changes after it is made; any thread may use it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

inline constexpr std::size_t kMaxVars = 64;
inline constexpr std::size_t kMaxVarBytes = 200;               // of a name
inline constexpr std::size_t kMaxDefaultsBytes = 64ULL << 10;  // as compact JSON

class PayloadVars {
 public:
  // Null when the config asks for nothing.
  static std::unique_ptr<const PayloadVars> make(const QueueConfig& config);

  // Adds the defaults that `payload` lacks. Errc::missing_var, with `payload` as it was, when the
  // queue has `vars` and a field is missing, or the payload is no JSON object. Without `vars` a
  // payload of another kind is left alone. `queue` is for the message.
  Status apply(std::string& payload, PayloadKind kind, std::string_view queue) const;

 private:
  struct Field {
    std::string name;
    bool required = false;
    std::string default_text;  // `"name":value`; empty: none
    bool default_is_null = false;
  };
  struct Looked;

  PayloadVars() = default;
  Looked look_at(std::string_view payload) const;
  std::size_t find(std::string_view name) const;
  Error refusal(std::string_view problem, std::string_view queue) const;

  std::vector<Field> fields_;          // by name
  std::vector<std::size_t> order_;     // of the defaults in their text: index of the field
  std::vector<std::string> required_;  // in the order of `vars`
};

}  // namespace reprise
