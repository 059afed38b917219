#include "cli/command_context.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "model/queue.h"

namespace reprise::cli {
namespace {

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

CommandContext::CommandContext(CommonFlags flags, NamespaceChoice place, client::Client client,
                               std::string token)
    : Output(flags.json, Terminal::detect()),
      flags_(std::move(flags)),
      place_(std::move(place)),
      client_(std::move(client)),
      token_(std::move(token)) {}

Result<CommandContext> CommandContext::make(CommonFlags flags, Scope scope) {
  auto url = client::parse_server_url(flags.server);
  if (!url) return Error{Errc::invalid_field, "--server: " + url.error().detail};
  auto token = find_token(flags);
  if (!token) return token.error();
  if (flags.ns.empty()) flags.ns = std::exchange(flags.project, {});
  NamespaceChoice place{.ns = flags.ns.empty() ? std::string(kDefaultNamespace) : flags.ns};
  if (scope == Scope::one_namespace) {
    auto chosen = choose_namespace(flags.ns, current_directory());
    if (!chosen) return chosen.error();
    place = *std::move(chosen);
  }
  client::Client client(client::HttpClient(*url, *token), place.ns);
  if (place.own_name) client.set_project_root(place.root);
  return CommandContext(std::move(flags), std::move(place), std::move(client), *std::move(token));
}

int CommandContext::print_json(const client::Reply& reply) const {
  print(reply.body);
  print("\n");
  return kExitOk;
}

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
