// run PIPELINE, run list, show, logs, cancel, wait: trials of pipelines, and the runs there were.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/duration.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/log_follow.h"
#include "cli/reply_text.h"
#include "cli/run_record.h"
#include "cli/run_trial.h"
#include "cli/run_wait.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Runs";

struct ListFlags {
  std::optional<std::string> worker;
  std::optional<std::string> queue;
  std::optional<std::string> pipeline;
  std::optional<std::string> status;
  std::optional<std::uint64_t> limit;
  bool all_namespaces = false;
  bool no_header = false;
};

int list(CommandContext& context, const ListFlags& flags) {
  client::QueryParameters filter;
  if (flags.all_namespaces) filter.emplace_back("namespace", "*");
  if (flags.worker) filter.emplace_back("worker", *flags.worker);
  if (flags.queue) filter.emplace_back("queue", *flags.queue);
  if (flags.pipeline) filter.emplace_back("pipeline", *flags.pipeline);
  if (flags.status) filter.emplace_back("status", *flags.status);
  if (flags.limit) filter.emplace_back("limit", std::to_string(*flags.limit));
  const auto reply = context.client().list_runs(filter);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table(run_columns(flags.all_namespaces), context.terminal(), !flags.no_header);
  const Timestamp now = wall_now();
  for (const auto& run : reply->json()["runs"].elements()) {
    table.add(run_row(run, flags.all_namespaces, context.terminal(), now));
  }
  context.print(table.take_text());
  return kExitOk;
}

int show(CommandContext& context, const std::string& id) {
  const auto reply = context.client().show_run(id);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(run_text(reply->json(), context.terminal(), wall_now()));
  return kExitOk;
}

int logs(CommandContext& context, const std::string& id, bool follow) {
  // An interrupt is one way that following normally ends.
  if (follow) catch_interrupts(NextInterrupt::ignored);
  LogPrinter printer(context, {.read =
                                   [&](client::QueryParameters page, Duration wait) {
                                     return context.client().run_log(id, std::move(page), wait);
                                   },
                               .tail = std::nullopt,
                               .follow = follow});
  const int code = printer.print(interrupted);
  printer.finish_line();
  return code;
}

int cancel(CommandContext& context, const std::string& id) {
  const auto reply = context.client().cancel_run(id);
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("cancelling {}\n", escape_text(text_of(reply->json()["id"]))));
  return kExitOk;
}

int wait(CommandContext& context, const std::string& id,
         const std::optional<std::string>& timeout) {
  std::optional<Duration> longest;
  if (timeout) {
    const auto parsed = parse_duration(*timeout);  // checked where it was typed
    longest = parsed ? *parsed : Duration::zero();
  }
  const auto reply = wait_for_run(context, id, longest, [] { return false; });
  if (const int code = context.report(reply); code != kExitOk) return code;
  const int code = run_exit_code(reply->json());
  if (context.json()) {
    context.print_json(*reply);
  } else if (code != kExitOk) {
    context.print_problem(run_problem(reply->json()));
  } else {
    context.print(fmt::format("succeeded {}\n", escape_text(text_of(reply->json()["id"]))));
  }
  return code;
}

void add_list(CLI::App& run, const Commands& commands) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App& command =
      add_command(run, {.name = "list",
                        .description = "List runs, the newest first",
                        .examples = "  reprise run list\n"
                                    "  reprise run list --worker shipper --status failed\n"
                                    "  reprise run list -A --limit 1000 --json",
                        .group = kGroup});
  command.add_option("--worker", flags->worker, "Only of this worker")->type_name("NAME");
  command.add_option("--queue", flags->queue, "Only for jobs of this queue")->type_name("NAME");
  command.add_option("--pipeline", flags->pipeline, "Only of this pipeline")->type_name("NAME");
  command
      .add_option("--status", flags->status,
                  "Only these: running, succeeded, failed, cancelled or lost")
      ->type_name("STATUS")
      ->check(CLI::IsMember({"running", "succeeded", "failed", "cancelled", "lost"}));
  command.add_option("--limit", flags->limit, "At most this many [50]")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command.add_flag("-A,--all-namespaces", flags->all_namespaces, "Of all namespaces");
  add_no_header(command, flags->no_header);
  commands.on_run(command, [flags](CommandContext& context) { return list(context, *flags); });
}

// A command about one run. Ids are those of the whole server.
CLI::App& add_for_one(CLI::App& run, const CommandInfo& info, std::string& id) {
  CLI::App& command = add_command(run, info);
  command.add_option("ID", id, "The run's id, or its beginning")->required()->type_name("");
  return command;
}

void add_plain(CLI::App& run, const Commands& commands, const CommandInfo& info,
               int (*action)(CommandContext&, const std::string&)) {
  auto id = std::make_shared<std::string>();
  CLI::App& command = add_for_one(run, info, *id);
  commands.on_run(
      command, [id, action](CommandContext& context) { return action(context, *id); },
      Scope::whole_server);
}

void add_logs(CLI::App& run, const Commands& commands) {
  auto id = std::make_shared<std::string>();
  auto follow = std::make_shared<bool>(false);
  CLI::App& command = add_for_one(run,
                                  {.name = "logs",
                                   .description = "Print the output of a run's steps",
                                   .examples = "  reprise run logs 3K9M\n"
                                               "  reprise run logs 3K9M -f",
                                   .group = kGroup},
                                  *id);
  command.add_flag("-f,--follow", *follow, "Go on until the run has ended, or interrupted");
  commands.on_run(
      command, [id, follow](CommandContext& context) { return logs(context, *id, *follow); },
      Scope::whole_server);
}

void add_wait(CLI::App& run, const Commands& commands) {
  auto id = std::make_shared<std::string>();
  auto timeout = std::make_shared<std::optional<std::string>>();
  CLI::App& command = add_for_one(
      run,
      {.name = "wait",
       .description = "Wait until a run has ended",
       .examples = "  reprise run wait 3K9M\n"
                   "  reprise run wait 3K9M --timeout 5m\n"
                   "Exit codes: 0 succeeded, 1 failed, 4 cancelled, 5 lost, 6 still running",
       .group = kGroup},
      *id);
  add_duration(command, "--timeout", *timeout, "Wait at most this long [until it has ended]");
  commands.on_run(
      command, [id, timeout](CommandContext& context) { return wait(context, *id, *timeout); },
      Scope::whole_server);
}

void add_trial_flags(CLI::App& run, const std::shared_ptr<TrialFlags>& flags) {
  run.add_option("PIPELINE", flags->pipeline, "The pipeline to try")->type_name("");
  auto* const item = run.add_option("--item", flags->item, "What ${item} stands for; JSON [{}]")
                         ->type_name("JSON");
  run.add_flag("--item-stdin", flags->item_from_stdin, "The same from standard input")
      ->excludes(item);
  run.add_flag("--detach", flags->detach, "Print the run's id and do not wait");
}

// What stands before the command belongs to `run` itself, and would be lost. Asked while the words
// are read: later, variables of the environment count as given, too.
void check_order(const CLI::App& run, const CLI::App& command) {
  for (const CLI::Option* const option : run.get_options()) {
    if (option->count() == 0) continue;
    if (option->get_positional()) {
      throw CLI::ExcludesError(
          fmt::format("{} is a command of its own: it follows `run` at once", command.get_name()),
          CLI::ExitCodes::ExcludesError);
    }
    throw CLI::ExcludesError(option->get_name() + " goes after the command",
                             CLI::ExitCodes::ExcludesError);
  }
}

}  // namespace

void add_run_commands(CLI::App& root, const Commands& commands) {
  auto flags = std::make_shared<TrialFlags>();
  CLI::App& run = add_command(
      root, {.name = "run",
             .description = "Try a pipeline, without a queue; or see the runs there were",
             .examples =
                 "  reprise run ship --item '{\"id\": 7}'\n"
                 "  reprise run ship --detach\n"
                 "  reprise run list --status failed\n"
                 "  reprise run -- list                  a pipeline that is named like a command\n"
                 "Exit codes: 0 succeeded, 1 failed, 4 cancelled, 5 lost",
             .group = "Runbooks"});
  add_trial_flags(run, flags);
  commands.on_run(run, [flags](CommandContext& context) { return try_pipeline(context, *flags); });
  add_list(run, commands);
  add_plain(run, commands,
            {.name = "show",
             .description = "Show one run with its steps",
             .examples = "  reprise run show 3K9M\n  reprise run show 3K9M --json | jq .steps",
             .group = kGroup},
            show);
  add_logs(run, commands);
  add_plain(run, commands,
            {.name = "cancel",
             .description = "End a run; its job goes to the dead ones",
             .examples = "  reprise run cancel 3K9M",
             .group = kGroup},
            cancel);
  add_wait(run, commands);
  for (CLI::App* const command : run.get_subcommands({})) {
    command->preparse_callback([&run, command](std::size_t) { check_order(run, *command); });
  }
}

}  // namespace reprise::cli
