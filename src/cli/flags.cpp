#include "cli/flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/duration.h"
#include "base/rate.h"
#include "base/text.h"

namespace reprise::cli {

CLI::Option* add_queue_argument(CLI::App& command, std::string& queue) {
  return command.add_option("QUEUE", queue, "The queue's name")->required()->type_name("");
}

CLI::Option* add_duration(CLI::App& command, const std::string& flag,
                          std::optional<std::string>& target, const std::string& description) {
  return command.add_option(flag, target, description)
      ->type_name("DURATION")
      ->check(duration_problem);
}

CLI::Option* add_headers(CLI::App& command, std::vector<std::string>& target,
                         const std::string& description) {
  return command
      .add_option("--header", target, description)
      // One value for each --header: the next word may be the payload.
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE")
      ->check(header_problem);
}

std::pair<std::string, std::string> split_header(std::string_view header) {
  const std::size_t equals = header.find('=');
  return {std::string(header.substr(0, equals)), std::string(header.substr(equals + 1))};
}

void add_no_header(CLI::App& command, bool& target) {
  command.add_flag("--no-header", target, "Leave out the line with the column names");
}

bool is_count(const std::string& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string duration_problem(const std::string& text) {
  const auto parsed = parse_duration(text);
  return parsed ? std::string() : parsed.error().detail;
}

std::string header_problem(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals != std::string::npos && equals > 0) return {};
  return "'" + text + "' is no header; write NAME=VALUE";
}

std::string count_problem(const std::string& text) {
  return is_count(text) ? std::string() : "'" + text + "' is no whole number";
}

std::string number_problem(const std::string& text) {
  return parse_number(text) ? std::string() : "'" + text + "' is no number";
}

std::string rate_problem(const std::string& text) {
  const auto parsed = parse_rate(text);
  return parsed ? std::string() : parsed.error().detail;
}

std::string utf8_problem(const std::string& text) {
  return is_valid_utf8(text) ? std::string() : "is not UTF-8 text";
}

}  // namespace reprise::cli
