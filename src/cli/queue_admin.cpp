// queue create, update, pause, resume, delete.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/queue_config_flags.h"

namespace reprise::cli {
namespace {

using client::Reply;

constexpr char kGroup[] = "Queues";

// The end that the commands here share: an error, the reply, or a sentence.
int finish(CommandContext& context, const Result<Reply>& reply, const std::string& queue,
           std::string_view done) {
  if (const int code = context.report(reply, queue); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("{} queue {}\n", done, escape_text(queue)));
  return kExitOk;
}

struct CreateFlags {
  std::string queue;
  ConfigFlags config;
  bool replace = false;
};

int create(CommandContext& context, const CreateFlags& flags) {
  const auto reply =
      context.client().create_queue(flags.queue, config_json(flags.config), flags.replace);
  const bool existed = reply && reply->status == 200;
  return finish(context, reply, flags.queue, existed ? "replaced config of" : "created");
}

int update(CommandContext& context, const std::string& queue, const ConfigFlags& config) {
  const std::string changes = config_json(config);
  if (changes == "{}") {
    throw CLI::ValidationError("nothing to change: name at least one config flag");
  }
  return finish(context, context.client().update_queue(queue, changes), queue, "updated");
}

std::string jobs_text(std::uint64_t count) {
  return count == 1 ? "its 1 job" : fmt::format("its {} jobs", count);
}

std::uint64_t jobs_in(JsonView stats) {
  std::uint64_t sum = 0;
  for (const char* status : {"scheduled", "pending", "active", "failed", "dead"}) {
    sum += stats[status].unsigned_integer().value_or(0);
  }
  return sum;
}

int delete_queue(CommandContext& context, const std::string& queue, bool yes) {
  if (!yes) {
    if (!context.terminal().can_ask()) {
      context.note("reprise: queue delete asks only on a terminal; say --yes to delete the queue");
      return kExitUsage;
    }
    const auto reply = context.client().show_queue(queue);
    if (const int code = context.report(reply, queue); code != kExitOk) return code;
    const auto question = fmt::format("Delete queue {} and {}?", escape_text(queue),
                                      jobs_text(jobs_in(reply->json()["stats"])));
    if (!ask_yes_no(question)) return kExitRefused;
  }
  const auto reply = context.client().delete_queue(queue);
  if (const int code = context.report(reply, queue); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  const auto jobs = reply->json()["jobs"].unsigned_integer().value_or(0);
  context.print(fmt::format("deleted queue {} and {}\n", escape_text(queue), jobs_text(jobs)));
  return kExitOk;
}

void add_create(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App& command = add_command(
      queue, {.name = "create",
              .description = "Create a queue",
              .examples =
                  "  reprise queue create orders --lease 30s\n"
                  "  reprise queue create mail --retry-attempts 5 --retry-cooldown 1m --ttl 1d\n"
                  "  reprise queue create mail --max-retries 4 --backoff-base 10s --keep-dead 30d\n"
                  "  reprise queue create orders --on-failure-file failure.lua\n"
                  "  reprise queue create orders --concurrency 50 --concurrency-per-key 5\n"
                  "  reprise queue create orders --lease 1m --replace",
              .group = kGroup});
  add_queue_argument(command, flags->queue);
  command.add_flag("--replace", flags->replace,
                   "If the queue is there, replace its config instead of refusing");
  add_config_flags(command, flags->config);
  commands.on_run(command, [flags](CommandContext& context) { return create(context, *flags); });
}

void add_update(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App& command = add_command(
      queue, {.name = "update",
              .description = "Change a queue's config; what is not named stays",
              .examples = "  reprise queue update orders --lease 1m --retry-attempts 5\n"
                          "  reprise queue update orders --dead-letter-queue orders-dead\n"
                          "  reprise queue update orders --on-failure-file failure.lua\n"
                          "  reprise queue update orders --on-failure-file none --ttl none\n"
                          "  reprise queue update orders --breaker failure_rate=0.8,pause=1m\n"
                          "  reprise queue update orders --breaker none --concurrency none",
              .group = kGroup});
  add_queue_argument(command, flags->queue);
  add_config_flags(command, flags->config);
  commands.on_run(command, [flags](CommandContext& context) {
    return update(context, flags->queue, flags->config);
  });
}

void add_pause_and_resume(CLI::App& queue, const Commands& commands) {
  auto name = std::make_shared<std::string>();
  CLI::App& pause =
      add_command(queue, {.name = "pause",
                          .description = "Hand out no more jobs; pushes and acks go on",
                          .examples = "  reprise queue pause orders",
                          .group = kGroup});
  add_queue_argument(pause, *name);
  commands.on_run(pause, [name](CommandContext& context) {
    return finish(context, context.client().pause_queue(*name), *name, "paused");
  });

  CLI::App& resume = add_command(queue, {.name = "resume",
                                         .description = "Hand out jobs again",
                                         .examples = "  reprise queue resume orders",
                                         .group = kGroup});
  add_queue_argument(resume, *name);
  commands.on_run(resume, [name](CommandContext& context) {
    return finish(context, context.client().resume_queue(*name), *name, "resumed");
  });
}

void add_delete(CLI::App& queue, const Commands& commands) {
  struct Flags {
    std::string queue;
    bool yes = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command = add_command(
      queue, {.name = "delete",
              .description = "Delete a queue with all its jobs; nothing of it stays on disk",
              .examples = "  reprise queue delete orders\n  reprise queue delete orders --yes",
              .group = kGroup});
  add_queue_argument(command, flags->queue);
  command.add_flag("-y,--yes", flags->yes, "Do not ask; required when not on a terminal");
  commands.on_run(command, [flags](CommandContext& context) {
    return delete_queue(context, flags->queue, flags->yes);
  });
}

}  // namespace

void add_queue_admin_commands(CLI::App& queue, const Commands& commands) {
  add_create(queue, commands);
  add_update(queue, commands);
  add_pause_and_resume(queue, commands);
  add_delete(queue, commands);
}

}  // namespace reprise::cli
