// queue policy: what a retry policy means, before anything has failed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "base/duration.h"
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/hook_record.h"
#include "cli/queue_config_flags.h"
#include "cli/retry_schedule.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

constexpr char kGroup[] = "Failures";
constexpr std::uint32_t kMaxRows = 10'000;

struct PolicyFlags {
  std::string queue;
  RetryFlags retry;
  std::uint32_t limit = 20;
  bool no_header = false;
};

Status change_policy(RetryPolicy& policy, std::string_view retry) {
  const auto json = Json::parse(retry);
  if (!json) return json.error();
  return apply_retry_json(policy, *json);
}

// Whose policy it is, when it is a queue's.
struct PolicyOwner {
  std::string queue;               // empty: nobody's
  std::string on_failure_version;  // empty: it has no such hook
};

// The queue's own policy. kExitOk, or the exit code after telling why there is none.
int read_policy(CommandContext& context, PolicyOwner& owner, RetryPolicy& policy) {
  const auto reply = context.client().show_queue(owner.queue);
  if (const int code = context.report(reply, owner.queue); code != kExitOk) return code;
  owner.on_failure_version = version_of_hook(reply->json(), HookKind::on_failure);
  const auto applied = change_policy(policy, reply->json()["config"]["retry"].raw());
  return applied ? kExitOk : context.fail(applied.error());
}

void print_table(const CommandContext& context, const RetrySchedule& schedule, bool header) {
  Table table(
      {{.title = "ATTEMPT"}, {.title = "WAIT"}, {.title = "AFTER"}, {.title = "IF IT FAILS"}},
      context.terminal(), header);
  for (const auto& attempt : schedule.attempts) {
    table.add({Cell(std::to_string(attempt.attempt)), Cell(wait_text(attempt)),
               Cell(humanize_duration(attempt.after)),
               attempt.dead_if_it_fails ? Cell("dead", Style::red) : Cell("retry")});
  }
  context.print(table.take_text());
  if (!schedule.complete) context.print("…\n");
}

// Which of the table a hook leaves standing: a configured cap (docs/failures.md).
void note_hook(const CommandContext& context, const PolicyOwner& owner, const RetryPolicy& policy) {
  if (owner.on_failure_version.empty()) return;
  const bool no_cap = policy.attempts == 0U;
  context.note(fmt::format(
      "on_failure {} {}; see: reprise hook show {}", escape_text(owner.on_failure_version),
      no_cap ? "decides alone, as no cap is configured: the table is without it"
             : "decides the waits and may end a job earlier: the table is "
               "without it, except for the cap",
      escape_text(owner.queue)));
}

void print_as_json(const CommandContext& context, const PolicyOwner& owner,
                   const RetryPolicy& policy, const RetrySchedule& schedule) {
  JsonWriter json;
  json.begin_object().key("queue");
  owner.queue.empty() ? json.null() : json.value(owner.queue);
  if (!owner.on_failure_version.empty()) json.key("on_failure").value(owner.on_failure_version);
  json.key("retry");
  write_retry_json(json, policy);
  write_schedule_members(json, policy, schedule);
  json.end_object();
  context.print(json.take() + "\n");
}

int policy(CommandContext& context, const PolicyFlags& flags) {
  RetryPolicy policy;
  PolicyOwner owner{.queue = flags.queue, .on_failure_version = {}};
  if (!owner.queue.empty()) {
    if (const int code = read_policy(context, owner, policy); code != kExitOk) return code;
  }
  const auto changed = change_policy(policy, retry_json(flags.retry));
  if (!changed) throw CLI::ValidationError(changed.error().detail);
  const auto schedule = retry_schedule(policy, flags.limit);
  if (context.json()) {
    print_as_json(context, owner, policy, schedule);
  } else {
    print_table(context, schedule, !flags.no_header);
    note_hook(context, owner, policy);
  }
  return kExitOk;
}

}  // namespace

void add_queue_policy_command(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<PolicyFlags>();
  CLI::App& command = add_command(
      queue, {.name = "policy",
              .description = "Show the schedule that a retry policy gives",
              .examples = "  reprise queue policy orders\n"
                          "  reprise queue policy orders --backoff-base 5s    what if\n"
                          "  reprise queue policy --max-retries 4             needs no server",
              .group = kGroup});
  add_queue_argument(command, flags->queue)
      ->required(false)
      ->description("The queue whose policy it is; without it the flags alone count");
  command.add_option("--limit", flags->limit, "At most this many attempts")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, kMaxRows))
      ->capture_default_str();
  add_no_header(command, flags->no_header);
  add_retry_flags(command, flags->retry, "Retry policy (each also takes: default)");
  commands.on_run(command, [flags](CommandContext& context) { return policy(context, *flags); });
}

}  // namespace reprise::cli
