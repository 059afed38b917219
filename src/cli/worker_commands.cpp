// worker start, stop, restart, resize, list, logs: workers that run pipelines for jobs.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/log_follow.h"
#include "cli/project_call.h"
#include "cli/project_record.h"
#include "cli/worker_record.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Workers";
constexpr std::uint64_t kDefaultTail = 64 << 10;

struct ChangeFlags {
  std::vector<std::string> names;
  bool all = false;
  bool now = false;
  std::optional<std::uint64_t> concurrency;  // resize
};

std::string change_body(const ChangeFlags& flags, const std::string& root) {
  JsonWriter json;
  json.begin_object();
  if (flags.all) {
    json.key("all").value(true);
  } else {
    json.key("names").begin_array();
    for (const auto& name : flags.names) json.value(name);
    json.end_array();
  }
  if (flags.now) json.key("now").value(true);
  if (flags.concurrency) json.key("concurrency").value(*flags.concurrency);
  if (!root.empty()) json.key("root").value(root);
  json.end_object();
  return json.take();
}

// Each worker is judged by itself.
int print_results(CommandContext& context, std::string_view verb, const client::Reply& reply) {
  int code = kExitOk;
  for (const auto& result : reply.json()["results"].elements()) {
    const bool refused = result["status"].string_or("") == "error";
    if (refused) code = kExitRefused;
    if (context.json()) continue;  // the reply says it
    if (refused) {
      context.print_problem(problem_from(result["error"]));
    } else {
      context.print(escape_text(worker_result_text(verb, result)) + "\n");
    }
  }
  if (context.json()) context.print_json(reply);
  return code;
}

int change(CommandContext& context, const std::string& verb, const ChangeFlags& flags) {
  if (flags.names.empty() && !flags.all) {
    throw CLI::ValidationError("NAME or --all", "say which workers, or all of them");
  }
  const auto send = [&](const std::string& root) {
    return context.client().change_workers(verb, change_body(flags, root));
  };
  const auto reply = verb == "start" ? call_in_project(context, send) : send({});
  if (const int code = report_in_project(context, reply); code != kExitOk) return code;
  return print_results(context, verb, *reply);
}

struct ListFlags {
  bool all_namespaces = false;
  bool no_header = false;
};

int list(CommandContext& context, const ListFlags& flags) {
  const auto reply = context.client().list_workers(flags.all_namespaces);
  if (const int code = report_in_project(context, reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  Table table(worker_columns(flags.all_namespaces), context.terminal(), !flags.no_header);
  for (const auto& worker : reply->json()["workers"].elements()) {
    table.add(worker_row(worker, flags.all_namespaces));
  }
  context.print(table.take_text());
  std::fflush(stdout);
  for (const auto& project : reply->json()["projects"].elements()) {
    if (const auto text = broken_text(project); !text.empty()) context.note(escape_text(text));
  }
  return kExitOk;
}

struct LogFlags {
  std::string name;
  bool follow = false;
  std::optional<std::string> tail;
};

int logs(CommandContext& context, const LogFlags& flags) {
  // An interrupt is how following normally ends.
  if (flags.follow) catch_interrupts(NextInterrupt::ignored);
  LogPrinter printer(context,
                     {.read =
                          [&](client::QueryParameters page, Duration wait) {
                            return context.client().worker_log(flags.name, std::move(page), wait);
                          },
                      .tail = flags.tail ? parse_bytes(*flags.tail).value_or(0) : kDefaultTail,
                      .follow = flags.follow});
  const int code = printer.print(interrupted);
  printer.finish_line();
  return code;
}

void add_change(CLI::App& worker, const Commands& commands, const CommandInfo& info) {
  auto flags = std::make_shared<ChangeFlags>();
  CLI::App& command = add_command(worker, info);
  auto* const names = command.add_option("NAME", flags->names, "The workers' names")->type_name("");
  command.add_flag("--all", flags->all, "All workers of the project")->excludes(names);
  if (info.name != "start") {
    command.add_flag("--now", flags->now, "End running jobs and give them back unharmed");
  }
  commands.on_run(command, [flags, verb = info.name](CommandContext& context) {
    return change(context, verb, *flags);
  });
}

void add_resize(CLI::App& worker, const Commands& commands) {
  auto flags = std::make_shared<ChangeFlags>();
  auto name = std::make_shared<std::string>();
  CLI::App& command = add_command(
      worker, {.name = "resize",
               .description = "Change how many jobs a worker works on at once, until its runbook "
                              "says something new or it is restarted",
               .examples = "  reprise worker resize shipper 8",
               .group = kGroup});
  command.add_option("NAME", *name, "The worker's name")->required()->type_name("");
  command.add_option("N", flags->concurrency, "So many jobs at once, 1 to 1000")
      ->required()
      ->type_name("")
      ->check(CLI::Range(1, 1000));
  commands.on_run(command, [flags, name](CommandContext& context) {
    flags->names = {*name};
    return change(context, "resize", *flags);
  });
}

void add_list(CLI::App& worker, const Commands& commands) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App& command =
      add_command(worker, {.name = "list",
                           .description = "List workers with what they do, and broken runbooks",
                           .examples = "  reprise worker list\n"
                                       "  reprise worker list -A\n"
                                       "  reprise worker list --no-header | cut -f1,3",
                           .group = kGroup});
  command.add_flag("-A,--all-namespaces", flags->all_namespaces, "Of all namespaces");
  add_no_header(command, flags->no_header);
  commands.on_run(command, [flags](CommandContext& context) { return list(context, *flags); });
}

void add_logs(CLI::App& worker, const Commands& commands) {
  auto flags = std::make_shared<LogFlags>();
  CLI::App& command =
      add_command(worker, {.name = "logs",
                           .description = "Print what a worker did and what its steps printed",
                           .examples = "  reprise worker logs shipper\n"
                                       "  reprise worker logs shipper -f\n"
                                       "  reprise worker logs shipper --tail 1MiB | grep error",
                           .group = kGroup});
  command.add_option("NAME", flags->name, "The worker's name")->required()->type_name("");
  command.add_flag("-f,--follow", flags->follow, "Go on with what it does until interrupted");
  command.add_option("--tail", flags->tail, "The last so many bytes [64KiB]")
      ->type_name("BYTES")
      ->check([](const std::string& text) {
        return parse_bytes(text) ? std::string() : "'" + text + "' is no size";
      });
  commands.on_run(command, [flags](CommandContext& context) { return logs(context, *flags); });
}

}  // namespace

void add_worker_commands(CLI::App& root, const Commands& commands) {
  CLI::App& worker = add_command(
      root, {.name = "worker",
             .description = "Start, stop and watch workers, which run pipelines for jobs",
             .examples = "",
             .group = "Runbooks"});
  worker.require_subcommand(1);
  add_change(worker, commands,
             {.name = "start",
              .description = "Start workers, or wake those that run; makes the project here known",
              .examples = "  reprise worker start shipper\n"
                          "  reprise worker start --all\n"
                          "  reprise worker start shipper mailer --project shop",
              .group = kGroup});
  add_change(worker, commands,
             {.name = "stop",
              .description = "Take no more jobs; running ones finish",
              .examples = "  reprise worker stop shipper\n  reprise worker stop --all --now",
              .group = kGroup});
  add_change(worker, commands,
             {.name = "restart",
              .description = "Stop workers, and start them when their running jobs have finished",
              .examples = "  reprise worker restart shipper\n  reprise worker restart --all --now",
              .group = kGroup});
  add_resize(worker, commands);
  add_list(worker, commands);
  add_logs(worker, commands);
}

}  // namespace reprise::cli
