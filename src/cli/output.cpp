#include "cli/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/ids.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/escape.h"
#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

// {"error":{…},"matches":["…"]}, as the API says it.
std::string ambiguity_json(const Problem& problem, const std::vector<std::string>& matches) {
  JsonWriter json;
  json.begin_object().key("error").raw(to_json(problem)).key("matches").begin_array();
  for (const auto& match : matches) json.value(match);
  json.end_array().end_object();
  return json.take();
}

}  // namespace

Problem problem_from(const Error& error) {
  return {.code = std::string(errc_info(error.code).wire_name), .message = error.detail};
}

Problem problem_from(JsonView error_object) {
  return {.code = error_object["code"].string_or("internal"),
          .message = error_object["message"].string_or("the server gave no reason")};
}

std::string to_json(const Problem& problem) {
  JsonWriter json;
  json.begin_object().key("code").value(problem.code).key("message").value(problem.message);
  json.end_object();
  return json.take();
}

void Output::print(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Output::note(std::string_view text) const {
  // Where both streams go to one place, what was printed before comes first.
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", text);
}

int Output::fail(const Error& error) const {
  Problem problem = problem_from(error);
  if (error.code == Errc::unreachable) {
    problem.message +=
        "; start a server with `reprise serve`, or name another with --server or REPRISE_URL";
  }
  if (json() && !error.matches.empty()) {
    note(ambiguity_json(problem, error.matches));
  } else {
    print_problem(problem);
    for (const auto& match : error.matches) note("  " + escape_text(match));
  }
  return exit_code_for(error.code);
}

void Output::print_problem(const Problem& problem, std::string_view subject) const {
  if (json()) {
    note(R"({"error":)" + to_json(problem) + "}");
    return;
  }
  std::string_view message = problem.message;
  std::string_view below;
  if (problem.code == errc_info(Errc::invalid_runbook).wire_name) {
    message = trimmed(message);
    const std::size_t line_end = std::min(message.find('\n'), message.size());
    below = trimmed(message.substr(line_end));
    message = message.substr(0, line_end);
  }
  note(fmt::format("reprise: {}{}{} ({})", escape_text(subject), subject.empty() ? "" : ": ",
                   escape_text(message), escape_text(problem.code)));
  while (!below.empty()) {
    const std::size_t line_end = std::min(below.find('\n'), below.size());
    note("  " + escape_text(below.substr(0, line_end)));
    below.remove_prefix(std::min(line_end + 1, below.size()));
  }
}

std::string Output::shown_id(std::string_view id) const {
  return std::string(terminal_.out_is_tty ? id.substr(0, kShownIdChars) : id);
}

}  // namespace reprise::cli
