// throttle set, list, unset: how many jobs that name a key may be started in a time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Throttles";
constexpr auto kRight = Column::Align::right;

struct SetFlags {
  std::string key;
  std::string rate;
  std::optional<std::uint64_t> burst;
};

int set(CommandContext& context, const SetFlags& flags) {
  const auto reply = context.client().set_throttle(flags.key, flags.rate, flags.burst);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  const auto throttle = reply->json();
  context.print(fmt::format("set {}: {}, burst {}\n", escape_text(flags.key),
                            escape_text(text_of(throttle["rate"])),
                            escape_text(text_of(throttle["burst"]))));
  return kExitOk;
}

int list(CommandContext& context, bool no_header) {
  const auto reply = context.client().list_throttles();
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table({{.title = "KEY", .may_be_cut = true},
               {.title = "RATE"},
               {.title = "BURST", .align = kRight},
               {.title = "TOKENS", .align = kRight},
               {.title = "WAITING", .align = kRight},
               {.title = "UPDATED", .may_be_left_out = true}},
              context.terminal(), !no_header);
  for (const auto& throttle : reply->json()["throttles"].elements()) {
    table.add({Cell(text_of(throttle["key"]), Style::bold), Cell(text_of(throttle["rate"])),
               Cell(text_of(throttle["burst"])), Cell(rate_text(throttle["tokens"])),
               Cell(text_of(throttle["waiting"])), Cell(text_of(throttle["updated_at"]))});
  }
  context.print(table.take_text());
  return kExitOk;
}

int unset(CommandContext& context, const std::string& key) {
  const auto reply = context.client().unset_throttle(key);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("unset {}\n", escape_text(key)));
  return kExitOk;
}

void add_key(CLI::App& command, std::string& key) {
  command.add_option("KEY", key, "What jobs name with --throttle-key")
      ->required()
      ->type_name("")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("must not be empty") : std::string();
      });
}

void add_set(CLI::App& throttle, const Commands& commands) {
  auto flags = std::make_shared<SetFlags>();
  CLI::App& command = add_command(
      throttle, {.name = "set",
                 .description = "Set how many jobs that name KEY may be started in a time",
                 .examples = "  reprise throttle set api 100/s --burst 20\n"
                             "  reprise throttle set reports 10/30s -n billing\n"
                             "  reprise throttle set 'mail to example.com' 30/m",
                 .group = kGroup});
  add_key(command, flags->key);
  command.add_option("RATE", flags->rate, "So many in a time: 100/s, 30/m, 10/30s")
      ->required()
      ->type_name("")
      ->check(rate_problem);
  command
      .add_option("--burst", flags->burst,
                  "How many may be started at once [what comes in a second, at least 1]")
      ->type_name("N");
  commands.on_run(command, [flags](CommandContext& context) { return set(context, *flags); });
}

void add_list(CLI::App& throttle, const Commands& commands) {
  auto no_header = std::make_shared<bool>(false);
  CLI::App& command = add_command(
      throttle, {.name = "list",
                 .description = "List all throttles of a namespace with what they have left",
                 .examples = "  reprise throttle list\n"
                             "  reprise throttle list --no-header | cut -f1,2\n"
                             "  reprise throttle list -n billing --json",
                 .group = kGroup});
  add_no_header(command, *no_header);
  commands.on_run(command,
                  [no_header](CommandContext& context) { return list(context, *no_header); });
}

void add_unset(CLI::App& throttle, const Commands& commands) {
  auto key = std::make_shared<std::string>();
  CLI::App& command =
      add_command(throttle, {.name = "unset",
                             .description = "Take a throttle away; what waited for it goes at once",
                             .examples = "  reprise throttle unset api",
                             .group = kGroup});
  add_key(command, *key);
  commands.on_run(command, [key](CommandContext& context) { return unset(context, *key); });
}

}  // namespace

void add_throttle_commands(CLI::App& root, const Commands& commands) {
  CLI::App& throttle = add_command(
      root, {.name = "throttle",
             .description = "How many jobs that name a key may be started in a time, for each "
                            "namespace",
             .examples = "",
             .group = "Queues and jobs"});
  throttle.require_subcommand(1);
  add_set(throttle, commands);
  add_list(throttle, commands);
  add_unset(throttle, commands);
}

}  // namespace reprise::cli
