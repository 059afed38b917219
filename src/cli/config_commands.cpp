// config set, get, list, unset: runtime values that hooks look up.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/input_file.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

using client::Reply;

constexpr char kGroup[] = "Runtime values";

// The end that set and unset share.
int finish(CommandContext& context, const Result<Reply>& reply, std::string_view done,
           const std::string& key) {
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("{} {}\n", done, escape_text(key)));
  return kExitOk;
}

int set(CommandContext& context, const std::string& key, std::string value) {
  if (value == "-") {
    value = read_text_file("VALUE", "-");
    if (value.ends_with('\n')) value.pop_back();
  }
  if (const auto problem = utf8_problem(value); !problem.empty()) {
    throw CLI::ValidationError("VALUE", problem);
  }
  return finish(context, context.client().set_config(key, value), "set", key);
}

int get(CommandContext& context, const std::string& key) {
  const auto reply = context.client().get_config(key);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  const std::string value = text_of(reply->json()["value"]);
  // A script wants the value, byte for byte; a terminal must not be made to act by it.
  context.print(context.terminal().out_is_tty ? escape_text(value) : value);
  context.print("\n");
  return kExitOk;
}

int list(CommandContext& context, bool no_header) {
  const auto reply = context.client().list_config();
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table({{.title = "KEY"},
               {.title = "VALUE", .may_be_cut = true},
               {.title = "UPDATED", .may_be_left_out = true}},
              context.terminal(), !no_header);
  for (const auto& entry : reply->json()["config"].elements()) {
    table.add({Cell(text_of(entry["key"]), Style::bold), Cell(text_of(entry["value"])),
               Cell(text_of(entry["updated_at"]))});
  }
  context.print(table.take_text());
  return kExitOk;
}

void add_key(CLI::App& command, std::string& key) {
  command.add_option("KEY", key, "Its name; like that of a queue")
      ->required()
      ->type_name("")
      ->check([](const std::string& text) {
        return text.empty() ? std::string("must not be empty") : std::string();
      });
}

void add_set(CLI::App& config, const Commands& commands) {
  struct Arguments {
    std::string key;
    std::string value;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App& command =
      add_command(config, {.name = "set",
                           .description = "Set a value; hooks see it from their next call on",
                           .examples = "  reprise config set card.retry_ms 5000\n"
                                       "  reprise config set payments.down yes -n billing\n"
                                       "  reprise config set limits - < limits.json\n"
                                       "  reprise config set offset -- -5",
                           .group = kGroup});
  add_key(command, arguments->key);
  command.add_option("VALUE", arguments->value, "Text, or - for standard input")
      ->required()
      ->type_name("");
  commands.on_run(command, [arguments](CommandContext& context) {
    return set(context, arguments->key, arguments->value);
  });
}

// A command about one key.
void add_for_one(CLI::App& config, const Commands& commands, const CommandInfo& info,
                 int (*run)(CommandContext&, const std::string&)) {
  auto key = std::make_shared<std::string>();
  CLI::App& command = add_command(config, info);
  add_key(command, *key);
  commands.on_run(command, [key, run](CommandContext& context) { return run(context, *key); });
}

void add_list(CLI::App& config, const Commands& commands) {
  auto no_header = std::make_shared<bool>(false);
  CLI::App& command =
      add_command(config, {.name = "list",
                           .description = "List all values of a namespace, by key",
                           .examples = "  reprise config list\n"
                                       "  reprise config list --no-header | cut -f1\n"
                                       "  reprise config list -n billing --json",
                           .group = kGroup});
  add_no_header(command, *no_header);
  commands.on_run(command,
                  [no_header](CommandContext& context) { return list(context, *no_header); });
}

}  // namespace

void add_config_commands(CLI::App& root, const Commands& commands) {
  CLI::App& config = add_command(
      root, {.name = "config",
             .description = "Runtime values that hooks look up with config.get, for each namespace",
             .examples = "",
             .group = "Hooks"});
  config.require_subcommand(1);
  add_set(config, commands);
  add_for_one(config, commands,
              {.name = "get",
               .description = "Print one value",
               .examples = "  reprise config get card.retry_ms",
               .group = kGroup},
              get);
  add_list(config, commands);
  add_for_one(config, commands,
              {.name = "unset",
               .description = "Take a value away; config.get then gives nil",
               .examples = "  reprise config unset card.retry_ms",
               .group = kGroup},
              [](CommandContext& context, const std::string& key) {
                return finish(context, context.client().unset_config(key), "unset", key);
              });
}

}  // namespace reprise::cli
