// timers: when external queues are listed next, and failed jobs are due.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

struct TimersFlags {
  std::optional<std::uint64_t> limit;
  bool no_header = false;
};

int timers(CommandContext& context, const TimersFlags& flags) {
  client::QueryParameters parameters;
  if (flags.limit) parameters.emplace_back("limit", std::to_string(*flags.limit));
  const auto reply = context.client().timers(parameters);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table({{.title = "TIMER"}, {.title = "DUE"}}, context.terminal(), !flags.no_header);
  const Timestamp now = wall_now();
  for (const auto& timer : reply->json()["timers"].elements()) {
    table.add({Cell(text_of(timer["id"]), Style::bold), Cell(until_text(timer["due_at"], now))});
  }
  context.print(table.take_text());
  return kExitOk;
}

}  // namespace

void add_timers_command(CLI::App& root, const Commands& commands) {
  auto flags = std::make_shared<TimersFlags>();
  CLI::App& command = add_command(
      root, {.name = "timers",
             .description = "When external queues are listed next, and failed jobs are due",
             .examples = "  reprise timers\n"
                         "  reprise timers --limit 1000 --json",
             .group = "Runbooks"});
  command.add_option("--limit", flags->limit, "At most this many [100]")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_no_header(command, flags->no_header);
  commands.on_run(command, [flags](CommandContext& context) { return timers(context, *flags); });
}

}  // namespace reprise::cli
