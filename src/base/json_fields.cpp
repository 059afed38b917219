#include "base/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/duration.h"
#include "base/text.h"

namespace reprise {
namespace {

// Numbers appear in messages as they were sent; long strings do not.
std::string describe(const Json& value) {
  return value.number() ? value.dump() : std::string(value.kind_name());
}

Result<Duration> duration_from_seconds(double seconds) {
  // parse_duration has the limits and the words for them; so large a number needs no digits.
  if (seconds > 1e12) return parse_duration("1000000000000s");
  return parse_duration(fmt::format("{:.6f}", seconds));
}

}  // namespace

JsonFields::JsonFields(const Json& object, std::string path)
    : object_(object.object()), path_(std::move(path)) {
  if (object_ != nullptr) return;
  const std::string prefix = path_.empty() ? std::string() : path_ + ": ";
  error_ = Error{Errc::invalid_request,
                 fmt::format("{}expected an object, got {}", prefix, object.kind_name())};
}

std::string JsonFields::full_name(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const Json* JsonFields::peek(std::string_view name) {
  if (std::ranges::find(known_, name) == known_.end()) known_.emplace_back(name);
  if (object_ == nullptr) return nullptr;
  const auto found = std::ranges::find(*object_, name, &Json::Member::first);
  return found == object_->end() ? nullptr : &found->second;
}

const Json* JsonFields::take(std::string_view name) {
  const Json* found = peek(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void JsonFields::fail(std::string_view name, std::string problem, Errc code) {
  if (error_) return;
  error_ = Error{code, fmt::format("{}: {}", full_name(name), problem)};
}

void JsonFields::wrong_kind(std::string_view name, std::string_view expected, const Json& got) {
  fail(name, fmt::format("expected {}, got {}", expected, describe(got)), Errc::invalid_request);
}

bool JsonFields::read(std::string_view name, std::string& out) {
  const Json* found = take(name);
  if (found == nullptr) return false;
  const std::string* text = found->string();
  if (text == nullptr) {
    wrong_kind(name, "a string", *found);
    return false;
  }
  out = *text;
  return true;
}

bool JsonFields::read(std::string_view name, bool& out) {
  const Json* found = take(name);
  if (found == nullptr) return false;
  const bool* flag = found->boolean();
  if (flag == nullptr) {
    wrong_kind(name, "true or false", *found);
    return false;
  }
  out = *flag;
  return true;
}

bool JsonFields::read(std::string_view name, std::uint32_t& out) {
  std::uint64_t wide = 0;
  if (!read(name, wide)) return false;
  constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
  if (wide > kMax) {
    fail(name, fmt::format("must be at most {}, got {}", kMax, wide));
    return false;
  }
  out = static_cast<std::uint32_t>(wide);
  return true;
}

bool JsonFields::read(std::string_view name, std::uint64_t& out) {
  const Json* found = take(name);
  if (found == nullptr) return false;
  if (const auto number = found->unsigned_integer()) {
    out = *number;
    return true;
  }
  const auto number = found->number();
  if (!number) {
    wrong_kind(name, "a whole number", *found);
  } else if (*number < 0) {
    fail(name, fmt::format("must not be negative, got {}", describe(*found)));
  } else if (std::trunc(*number) != *number) {
    fail(name, fmt::format("must be a whole number, got {}", describe(*found)));
  } else {
    fail(name, fmt::format("too large: {}", describe(*found)));
  }
  return false;
}

bool JsonFields::read(std::string_view name, double& out) {
  const Json* found = take(name);
  if (found == nullptr) return false;
  const auto number = found->number();
  if (!number) {
    wrong_kind(name, "a number", *found);
    return false;
  }
  out = *number;
  return true;
}

bool JsonFields::read(std::string_view name, Duration& out) {
  const Json* found = take(name);
  if (found == nullptr) return false;
  const auto number = found->number();
  const std::string* text = found->string();
  if (!number && text == nullptr) {
    wrong_kind(name, "a duration like \"30s\" or a number of seconds", *found);
    return false;
  }
  auto duration = number ? duration_from_seconds(*number) : parse_duration(*text);
  if (!duration) {
    fail(name, duration.error().detail, duration.error().code);
    return false;
  }
  out = *duration;
  return true;
}

Status JsonFields::finish() {
  if (error_) return *error_;
  for (const auto& [name, value] : *object_) {
    if (std::ranges::find(known_, name) != known_.end()) continue;
    std::string detail = fmt::format("unknown field '{}'", full_name(name));
    if (const auto meant = did_you_mean(name, known_)) {
      detail += fmt::format("; did you mean '{}'?", full_name(*meant));
    }
    return Error{Errc::unknown_field, std::move(detail)};
  }
  return Status{};
}

}  // namespace reprise
