#include "cli/command_context.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "model/queue.h"

namespace reprise::cli {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

Error token_error(std::string problem) {
  return {Errc::invalid_field, "--token-file: " + std::move(problem)};
}

// The first token of a file in the server's own format: "token" or "name:token" a line.
Result<std::string> read_token_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return token_error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  std::string line;
  while (std::getline(file, line)) {
    auto text = trimmed(line);
    if (text.empty() || text.starts_with('#')) continue;
    if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
      text.remove_prefix(colon + 1);
    }
    return std::string(trimmed(text));
  }
  return token_error(fmt::format("{} holds no token", path));
}

Result<std::string> find_token(const CommonFlags& flags) {
  std::string token;
  if (!flags.token_file.empty()) {
    auto from_file = read_token_file(flags.token_file);
    if (!from_file) return from_file.error();
    token = *std::move(from_file);
  } else if (const char* from_environment = std::getenv("REPRISE_TOKEN")) {
    token = trimmed(from_environment);
  }
  // It becomes part of a header line.
  for (const char c : token) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f') {
      return Error{Errc::invalid_field, "the token must not hold white space or controls"};
    }
  }
  return token;
}

}  // namespace

Problem problem_from(const Error& error) {
  return {.code = std::string(errc_info(error.code).wire_name), .message = error.detail};
}

Problem problem_from(client::JsonView error_object) {
  return {.code = error_object["code"].string_or("internal"),
          .message = error_object["message"].string_or("the server gave no reason")};
}

std::string to_json(const Problem& problem) {
  JsonWriter json;
  json.begin_object().key("code").value(problem.code).key("message").value(problem.message);
  json.end_object();
  return json.take();
}

CommandContext::CommandContext(CommonFlags flags, client::Client client)
    : flags_(std::move(flags)), client_(std::move(client)), terminal_(Terminal::detect()) {}

Result<CommandContext> CommandContext::make(const CommonFlags& flags) {
  auto url = client::parse_server_url(flags.server);
  if (!url) return Error{Errc::invalid_field, "--server: " + url.error().detail};
  auto token = find_token(flags);
  if (!token) return token.error();
  const std::string ns = flags.ns.empty() ? std::string(kDefaultNamespace) : flags.ns;
  return CommandContext(flags, client::Client(client::HttpClient(*url, *token), ns));
}

void CommandContext::print(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int CommandContext::print_json(const client::Reply& reply) const {
  print(reply.body);
  print("\n");
  return kExitOk;
}

void CommandContext::note(std::string_view text) const { fmt::print(stderr, "{}\n", text); }

int CommandContext::report(const Result<client::Reply>& reply, std::string_view queue) {
  if (!reply) return fail(reply.error());
  if (!reply->refused()) return kExitOk;
  if (json()) {
    note(reply->body);
    return kExitRefused;
  }
  Problem problem = problem_from(reply->json()["error"]);
  // The server says what it knows best; this helps with one that keeps silent.
  if (problem.code == "queue_not_found" && !queue.empty() &&
      problem.message.find("did you mean") == std::string::npos) {
    problem.message += suggestion_for(queue);
  }
  print_problem(problem);
  for (const auto& match : reply->json()["matches"].elements()) {
    note("  " + escape_text(match.string_or("")));
  }
  return kExitRefused;
}

int CommandContext::fail(const Error& error) const {
  Problem problem = problem_from(error);
  if (error.code == Errc::unreachable) {
    problem.message +=
        "; start a server with `reprise serve`, or name another with --server or REPRISE_URL";
  }
  print_problem(problem);
  return exit_code_for(error.code);
}

void CommandContext::print_problem(const Problem& problem, std::string_view subject) const {
  if (json()) {
    note(R"({"error":)" + to_json(problem) + "}");
  } else {
    note(fmt::format("reprise: {}{}{} ({})", escape_text(subject), subject.empty() ? "" : ": ",
                     escape_text(problem.message), escape_text(problem.code)));
  }
}

std::string CommandContext::shown_id(std::string_view id) const {
  return std::string(terminal_.out_is_tty ? id.substr(0, kShownIdChars) : id);
}

std::string CommandContext::suggestion_for(std::string_view queue) {
  const auto reply = client_.list_queues();
  if (!reply || reply->refused()) return {};
  std::vector<std::string> names;
  for (const auto& known : reply->json()["queues"].elements()) {
    names.push_back(known["name"].string_or(""));
  }
  const auto meant = did_you_mean(queue, names);
  return meant ? fmt::format("; did you mean '{}'?", *meant) : std::string();
}

}  // namespace reprise::cli
