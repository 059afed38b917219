// The value of --breaker (docs/cli.md, "queue create, update"): "failure_rate=0.5,window=1m", any
// of the fields of the API's `breaker`, or "on" for a breaker with all defaults.
#pragma once

#include <string>

namespace reprise {
class JsonWriter;
}  // namespace reprise

namespace reprise::cli {

// The text of a problem with `text`, or nothing: what CLI11 asks of a check.
std::string breaker_problem(const std::string& text);
// The API's object. `text` has passed the check. Fields that are left out are null, so that they
// have their defaults also where a queue had others.
void write_breaker(JsonWriter& json, const std::string& text);

}  // namespace reprise::cli
