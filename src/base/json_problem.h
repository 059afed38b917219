// Where and why a text is not the JSON that Json::parse takes. simdjson says neither where nor, for
// most mistakes, why; this slow second look is for text that simdjson has refused, and for text
// whose numbers are nobody's business.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

struct JsonProblem {
  std::size_t offset = 0;
  std::string_view problem;  // "expected ',' or '}'"
};

// JSON knows no limit for numbers; Json does.
enum class JsonNumbers : bool { as_doubles, any };

// The first problem in reading order. nullopt: the text is fine.
std::optional<JsonProblem> find_json_problem(std::string_view text,
                                             JsonNumbers numbers = JsonNumbers::as_doubles);

// "line 3, column 14", both from 1; the column counts bytes.
std::string describe_position(std::string_view text, std::size_t offset);

}  // namespace reprise
