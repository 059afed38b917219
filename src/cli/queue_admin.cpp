// queue create, update, pause, resume, delete.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
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

namespace reprise::cli {
namespace {

using client::Reply;

constexpr char kGroup[] = "Queues";

// The flags of a queue's config; what is not given is not sent.
struct ConfigFlags {
  std::optional<std::string> lease;
  std::optional<std::string> retry_attempts;
  std::optional<std::string> retry_cooldown;
  std::optional<std::string> ttl;
  std::optional<std::string> max_jobs;
  std::optional<std::string> max_bytes;
  std::optional<std::string> key_window;

  bool any() const {
    return lease || retry_attempts || retry_cooldown || ttl || max_jobs || max_bytes || key_window;
  }
};

bool is_reset(const std::string& text) { return text == "default" || text == "none"; }

bool is_count(const std::string& text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

std::string check_duration(const std::string& text) {
  return is_reset(text) ? std::string() : duration_problem(text);
}

std::string check_count(const std::string& text) {
  if (is_reset(text) || is_count(text)) return {};
  return "'" + text + "' is no whole number (or default)";
}

std::string check_bytes(const std::string& text) {
  if (is_reset(text) || parse_bytes(text)) return {};
  return "'" + text + "' is no size; write 1048576, 64KiB, 16MiB or default";
}

void add_config_flags(CLI::App& command, ConfigFlags& flags) {
  constexpr char kConfig[] = "Queue config (each also takes: default)";
  const auto add = [&](const char* flag, std::optional<std::string>& target, const char* type,
                       std::string (*check)(const std::string&), const char* description) {
    command.add_option(flag, target, description)->type_name(type)->check(check)->group(kConfig);
  };
  add("--lease", flags.lease, "DURATION", check_duration, "How long a claimed job is held [30s]");
  add("--retry-attempts", flags.retry_attempts, "N", check_count,
      "Dead at this many failures [0: at the first]");
  add("--retry-cooldown", flags.retry_cooldown, "DURATION", check_duration,
      "Wait before each retry [0s]");
  add("--ttl", flags.ttl, "DURATION", check_duration,
      "A job not finished this long after its push dies [none]");
  add("--max-jobs", flags.max_jobs, "N", check_count, "Refuse pushes beyond this many jobs [none]");
  add("--max-bytes", flags.max_bytes, "SIZE", check_bytes, "Refuse pushes beyond this size [none]");
  add("--key-window", flags.key_window, "DURATION", check_duration,
      "How long idempotency keys are remembered [1d]");
}

// Values have passed the checks above.
void write_text(JsonWriter& json, std::string_view name, const std::optional<std::string>& value) {
  if (!value) return;
  json.key(name);
  is_reset(*value) ? json.null() : json.value(*value);
}

void write_number(JsonWriter& json, std::string_view name,
                  const std::optional<std::string>& value) {
  if (!value) return;
  json.key(name);
  is_reset(*value) ? json.null() : json.value(parse_bytes(*value).value_or(0));
}

std::string config_json(const ConfigFlags& flags) {
  JsonWriter json;
  json.begin_object();
  write_text(json, "lease", flags.lease);
  write_text(json, "ttl", flags.ttl);
  if (flags.retry_attempts || flags.retry_cooldown) {
    json.key("retry").begin_object();
    write_number(json, "attempts", flags.retry_attempts);
    write_text(json, "cooldown", flags.retry_cooldown);
    json.end_object();
  }
  write_number(json, "max_jobs", flags.max_jobs);
  write_number(json, "max_bytes", flags.max_bytes);
  write_text(json, "key_window", flags.key_window);
  json.end_object();
  return json.take();
}

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
  return finish(context, context.client().update_queue(queue, config_json(config)), queue,
                "updated");
}

std::string jobs_text(std::uint64_t count) {
  return count == 1 ? "its 1 job" : fmt::format("its {} jobs", count);
}

std::uint64_t jobs_in(client::JsonView stats) {
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
      queue,
      {.name = "create",
       .description = "Create a queue",
       .examples = "  reprise queue create orders --lease 30s\n"
                   "  reprise queue create mail --retry-attempts 5 --retry-cooldown 1m --ttl 1d\n"
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
                          "  reprise queue update orders --ttl none --max-jobs default",
              .group = kGroup});
  add_queue_argument(command, flags->queue);
  add_config_flags(command, flags->config);
  commands.on_run(command, [flags](CommandContext& context) {
    if (!flags->config.any()) {
      throw CLI::ValidationError("nothing to change: name at least one config flag");
    }
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
