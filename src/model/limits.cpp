#include "model/limits.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::size_t kShownNameBytes = 64;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

bool is_name_char(char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }

}  // namespace

Status check_name(std::string_view what, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::invalid_name, std::string(what) + " name '" +
                                         std::string(cut_at_character(name, kShownNameBytes)) +
                                         "' " + std::string(why)};
  };
  if (name.empty()) return Error{Errc::invalid_name, std::string(what) + " name is empty"};
  if (name.size() > kMaxNameChars) return refuse("… is longer than 200 characters");
  if (!is_alphanumeric(name.front())) return refuse("must start with a letter or digit");
  if (!std::ranges::all_of(name, is_name_char)) {
    return refuse("may hold only letters, digits, '.', '_' and '-'");
  }
  return ok();
}

std::string scheduling_key_problem(std::string_view key) {
  if (key.empty()) return "must not be empty";
  if (key.size() > kMaxSchedulingKeyBytes) {
    return "has " + std::to_string(key.size()) + " bytes, at most " +
           std::to_string(kMaxSchedulingKeyBytes) + " are allowed";
  }
  if (!is_valid_utf8(key)) return "is not valid UTF-8";
  return {};
}

std::string event_type_problem(std::string_view type) {
  if (type.empty()) return "must not be empty";
  if (type.size() > kMaxEventTypeBytes) {
    return "has " + std::to_string(type.size()) + " bytes, at most " +
           std::to_string(kMaxEventTypeBytes) + " are allowed";
  }
  if (!is_valid_utf8(type)) return "is not valid UTF-8";
  if (std::ranges::any_of(type, is_control)) return "must not hold control characters";
  return {};
}

}  // namespace reprise
