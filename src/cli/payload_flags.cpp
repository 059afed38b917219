#include "cli/payload_flags.h"

#include <set>
#include <string_view>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace reprise::cli {
namespace {

Error refuse(std::string_view var, const std::string& problem) {
  return {Errc::invalid_field, "--var " + std::string(var) + ": " + problem};
}

}  // namespace

Result<std::string> payload_of_vars(const std::vector<std::string>& vars) {
  std::set<std::string_view> seen;
  JsonWriter json;
  json.begin_object();
  for (const std::string& var : vars) {
    const std::string_view text = var;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) return refuse(var, "write NAME=VALUE or NAME:=JSON");
    const bool is_json = equals > 0 && text[equals - 1] == ':';
    const std::string_view name = text.substr(0, is_json ? equals - 1 : equals);
    const std::string_view value = text.substr(equals + 1);
    if (name.empty()) return refuse(var, "a name must stand before the =");
    // Bytes that are no UTF-8 would arrive as something else.
    if (!is_valid_utf8(var)) return refuse(name, "is not UTF-8");
    if (!seen.insert(name).second) return refuse(name, "is given twice");
    json.key(name);
    if (!is_json) {
      json.value(value);
      continue;
    }
    if (const auto parsed = Json::parse(value); !parsed) {
      return refuse(name, parsed.error().detail + "; NAME=VALUE takes any text");
    }
    json.raw(value);
  }
  json.end_object();
  return json.take();
}

}  // namespace reprise::cli
