// Flags that several commands share, each checked where it is typed: text that no server could
// accept is a usage error that names the flag. Ranges and rules are left to the server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace reprise::cli {

// The positional argument QUEUE.
CLI::Option* add_queue_argument(CLI::App& command, std::string& queue);

// Sent to the server as typed.
CLI::Option* add_duration(CLI::App& command, const std::string& flag,
                          std::optional<std::string>& target, const std::string& description);

// --header NAME=VALUE, any number of times.
CLI::Option* add_headers(CLI::App& command, std::vector<std::string>& target,
                         const std::string& description);
// `header` has passed the check: there is a '=' and a name before it.
std::pair<std::string, std::string> split_header(std::string_view header);

// --no-header, for tables.
void add_no_header(CLI::App& command, bool& target);

// Digits only, and no more than fit.
bool is_count(const std::string& text);
// nullopt: no number, or none that JSON could hold.
std::optional<double> parse_number(const std::string& text);

// The text of a problem with `text`, or nothing: what CLI11 asks of a check.
std::string duration_problem(const std::string& text);
std::string header_problem(const std::string& text);
std::string count_problem(const std::string& text);
std::string number_problem(const std::string& text);
std::string rate_problem(const std::string& text);
// Sent as JSON, bytes that are no UTF-8 would arrive as something else.
std::string utf8_problem(const std::string& text);

}  // namespace reprise::cli
