// queue ack, fail, release, extend: one road, four verbs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Work";
// What the API takes in one call.
constexpr std::size_t kMaxTokens = 1000;
constexpr std::size_t kShownTokenChars = 8;

struct LeaseFlags {
  std::vector<std::string> tokens;
  std::optional<std::string> error;
  std::optional<std::string> error_type;
  std::optional<std::string> delay;
  std::optional<std::string> lease;
  bool final = false;
  bool no_header = false;
};

// "-" among the tokens stands for those on stdin.
std::vector<std::string> all_tokens(const std::vector<std::string>& given) {
  std::vector<std::string> tokens;
  for (const auto& token : given) {
    if (token != "-") {
      tokens.push_back(token);
      continue;
    }
    for (std::string word; std::cin >> word;) tokens.push_back(word);
  }
  return tokens;
}

std::string leases_body(std::span<const std::string> tokens, const LeaseFlags& flags) {
  JsonWriter json;
  json.begin_object().key("leases").begin_array();
  for (const auto& token : tokens) {
    json.begin_object().key("token").value(token);
    if (flags.error) json.key("error").value(*flags.error);
    if (flags.error_type) json.key("error_type").value(*flags.error_type);
    if (flags.delay) json.key("delay").value(*flags.delay);
    if (flags.lease) json.key("lease").value(*flags.lease);
    if (flags.final) json.key("final").value(true);
    json.end_object();
  }
  json.end_array().end_object();
  return json.take();
}

std::string detail_of(JsonView result) {
  for (const char* field : {"retry_at", "reason", "lease_expires_at"}) {
    if (const auto value = result[field]; !value.is_null()) return text_of(value);
  }
  return {};
}

// A token is a secret: its beginning is enough to find it again.
std::string token_subject(std::size_t place, const std::string& token) {
  const bool whole = token.size() <= kShownTokenChars;
  return fmt::format("token {} ({}{})", place, token.substr(0, kShownTokenChars), whole ? "" : "…");
}

// Prints what became of a batch of tokens, the first of which was given at `place` (from 1).
// Returns kExitRefused when one was refused.
int print_results(CommandContext& context, Table& table, JsonView results,
                  std::span<const std::string> tokens, std::size_t place) {
  int code = kExitOk;
  for (const auto& result : results.elements()) {
    const auto index =
        std::min<std::size_t>(result["index"].unsigned_integer().value_or(0), tokens.size() - 1);
    if (result["status"].string_or("") == "rejected") {
      code = kExitRefused;
      if (context.json()) continue;  // the reply says it
      context.print_problem(problem_from(result["error"]),
                            token_subject(place + index, tokens[index]));
    } else {
      table.add({Cell(context.shown_id(text_of(result["id"])), Style::bold),
                 status_cell(result["status"]), Cell(detail_of(result))});
    }
  }
  return code;
}

int end_leases(CommandContext& context, std::string_view verb, const LeaseFlags& flags) {
  const auto tokens = all_tokens(flags.tokens);
  Table table({{.title = "ID"}, {.title = "STATUS"}, {.title = "DETAIL"}}, context.terminal(),
              !flags.no_header);
  int code = kExitOk;
  for (std::size_t done = 0; done < tokens.size(); done += kMaxTokens) {
    const auto batch = std::span(tokens).subspan(done, std::min(kMaxTokens, tokens.size() - done));
    const auto reply = context.client().end_leases(verb, leases_body(batch, flags));
    if (const int refused = context.report(reply); refused != kExitOk) return refused;
    const int batch_code = print_results(context, table, reply->json()["results"], batch, done + 1);
    if (context.json()) {
      context.print_json(*reply);
    } else if (!table.empty()) {
      context.print(table.take_text());
    }
    code = std::max(code, batch_code);
  }
  return code;
}

CLI::App& add_lease_command(CLI::App& queue, const std::shared_ptr<LeaseFlags>& flags,
                            const CommandInfo& info) {
  CLI::App& command = add_command(queue, info);
  command.add_option("TOKEN", flags->tokens, "Tokens of leases; - reads them from stdin")
      ->required()
      ->type_name("");
  return command;
}

void finish_lease_command(CLI::App& command, const Commands& commands,
                          const std::shared_ptr<LeaseFlags>& flags) {
  add_no_header(command, flags->no_header);
  commands.on_run(
      command,
      [flags, verb = command.get_name()](CommandContext& context) {
        return end_leases(context, verb, *flags);
      },
      Scope::whole_server);
}

void add_ack(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<LeaseFlags>();
  CLI::App& command = add_lease_command(
      queue, flags,
      {.name = "ack",
       .description = "Finish leased jobs",
       .examples =
           "  reprise queue ack TOKEN\n"
           "  reprise queue claim orders --max 10 --no-header | cut -f2 | reprise queue ack -",
       .group = kGroup});
  finish_lease_command(command, commands, flags);
}

void add_fail(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<LeaseFlags>();
  CLI::App& command = add_lease_command(
      queue, flags,
      {.name = "fail",
       .description = "Report that the work failed; the queue's policy decides what follows",
       .examples = "  reprise queue fail TOKEN --error 'upstream timed out'\n"
                   "  reprise queue fail TOKEN --error 'timeout' --error-type Net\n"
                   "  reprise queue fail TOKEN --delay 10m\n"
                   "  reprise queue fail TOKEN --error 'bad input' --final",
       .group = kGroup});
  command.add_option("--error", flags->error, "What went wrong")->type_name("TEXT");
  command.add_option("--error-type", flags->error_type, "What kind of error it was, to filter by")
      ->type_name("TEXT");
  add_duration(command, "--delay", flags->delay, "Retry after this time, not the queue's wait");
  command.add_flag("--final", flags->final, "Do not retry: dead at once");
  finish_lease_command(command, commands, flags);
}

void add_release(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<LeaseFlags>();
  CLI::App& command = add_lease_command(
      queue, flags,
      {.name = "release",
       .description = "Give jobs back unharmed; counts as no failure",
       .examples = "  reprise queue release TOKEN\n  reprise queue release TOKEN --delay 1m",
       .group = kGroup});
  add_duration(command, "--delay", flags->delay, "Hand it out again only after this time");
  finish_lease_command(command, commands, flags);
}

void add_extend(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<LeaseFlags>();
  CLI::App& command = add_lease_command(
      queue, flags,
      {.name = "extend",
       .description = "Prolong leases, counted from now",
       .examples = "  reprise queue extend TOKEN\n  reprise queue extend TOKEN --lease 5m",
       .group = kGroup});
  add_duration(command, "--lease", flags->lease, "How long from now [the queue's]");
  finish_lease_command(command, commands, flags);
}

}  // namespace

void add_queue_lease_commands(CLI::App& queue, const Commands& commands) {
  add_ack(queue, commands);
  add_fail(queue, commands);
  add_release(queue, commands);
  add_extend(queue, commands);
}

}  // namespace reprise::cli
