#include "server/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/duration.h"
#include "base/text.h"

namespace reprise::server {
namespace {

// The byte that two hexadecimal digits stand for.
std::optional<char> hex_byte(std::string_view digits) {
  unsigned byte = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, byte, 16);
  if (digits.size() != 2 || parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

Result<std::string> decode_part(std::string_view text) {
  auto decoded = percent_decode(text, true);
  if (!decoded) {
    return Error{Errc::invalid_request, fmt::format("bad percent-escape in '{}'", text)};
  }
  if (!is_valid_utf8(*decoded)) {
    return Error{Errc::invalid_request, fmt::format("'{}' is not UTF-8", text)};
  }
  return std::move(*decoded);
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%') {
      const auto byte = hex_byte(text.substr(at + 1, 2));
      if (!byte) return std::nullopt;
      decoded.push_back(*byte);
      at += 2;
    } else {
      decoded.push_back(plus_is_space && text[at] == '+' ? ' ' : text[at]);
    }
  }
  return decoded;
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decode_part(pair.substr(0, equals));
    if (!name) return name.error();
    auto value = decode_part(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return value.error();
    query.parameters_.push_back({std::move(*name), std::move(*value)});
  }
  return query;
}

std::vector<std::string> Query::take_all(std::string_view name) {
  known_.emplace_back(name);
  std::vector<std::string> values;
  for (Parameter& parameter : parameters_) {
    if (parameter.name != name) continue;
    parameter.taken = true;
    values.push_back(parameter.value);
  }
  return values;
}

std::optional<std::string> Query::peek(std::string_view name) const {
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) return parameter.value;
  }
  return std::nullopt;
}

std::optional<std::string> Query::take(std::string_view name) {
  auto values = take_all(name);
  if (values.size() > 1) fail(name, "given more than once", Errc::invalid_request);
  if (values.empty()) return std::nullopt;
  return std::move(values.front());
}

std::vector<std::pair<std::string, std::string>> Query::take_prefixed(std::string_view prefix) {
  std::vector<std::pair<std::string, std::string>> found;
  for (Parameter& parameter : parameters_) {
    if (!parameter.name.starts_with(prefix)) continue;
    parameter.taken = true;
    found.emplace_back(parameter.name.substr(prefix.size()), parameter.value);
  }
  return found;
}

std::optional<Duration> Query::take_duration(std::string_view name) {
  const auto text = take(name);
  if (!text) return std::nullopt;
  auto duration = parse_duration(*text);
  if (!duration) {
    fail(name, duration.error().detail, duration.error().code);
    return std::nullopt;
  }
  return *duration;
}

std::optional<std::uint64_t> Query::take_number(std::string_view name, std::uint64_t min,
                                                std::uint64_t max) {
  const auto text = take(name);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end || number < min || number > max) {
    fail(name, fmt::format("must be a whole number from {} to {}", min, max));
    return std::nullopt;
  }
  return number;
}

void Query::fail(std::string_view name, std::string_view problem, Errc code) {
  if (!error_) error_ = Error{code, fmt::format("parameter {}: {}", name, problem)};
}

Status Query::finish() {
  if (error_) return *error_;
  for (const Parameter& parameter : parameters_) {
    if (parameter.taken) continue;
    std::string detail = fmt::format("unknown parameter '{}'", parameter.name);
    if (const auto meant = did_you_mean(parameter.name, known_)) {
      detail += fmt::format("; did you mean '{}'?", *meant);
    }
    return Error{Errc::unknown_field, std::move(detail)};
  }
  return ok();
}

}  // namespace reprise::server
