#include "model/limits.h"

#include <algorithm>
#include <string>

namespace reprise {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name_char(char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }

}  // namespace

Status check_name(std::string_view what, std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::invalid_name, std::string(what) + " name '" +
                                         std::string(name.substr(0, 64)) + "' " + std::string(why)};
  };
  if (name.empty()) return Error{Errc::invalid_name, std::string(what) + " name is empty"};
  if (name.size() > kMaxNameChars) return refuse("… is longer than 200 characters");
  if (!is_alphanumeric(name.front())) return refuse("must start with a letter or digit");
  if (!std::ranges::all_of(name, is_name_char)) {
    return refuse("may hold only letters, digits, '.', '_' and '-'");
  }
  return ok();
}

}  // namespace reprise
