#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/help_formatter.h"
#include "cli/spool_commands.h"
#include "cli/usage_error.h"
#include "reprise_version.h"

namespace reprise::cli {
namespace {

constexpr char kDescription[] =
    "Reprise, a durable work queue: jobs are kept safe, handed out under leases, and retried or "
    "kept "
    "for inspection when they fail.";

constexpr char kExamples[] =
    "Examples:\n"
    "  reprise serve                                     start a server\n"
    "  reprise queue create orders --retry-attempts 3    make a queue\n"
    "  reprise queue push orders '{\"id\":1}'              push a job\n"
    "  reprise queue claim orders --wait 30s             take it, with a token\n"
    "  reprise queue ack TOKEN                           done\n"
    "  reprise queue inspect orders                      what has died\n"
    "  reprise queue retry orders --all                  bring it back\n"
    "  reprise worker start shipper                      have the server work on it\n"
    "  reprise spool add order.created --data '{}'       keep an event until it can be sent\n"
    "\n"
    "Exit codes: 0 done, 1 refused or not found, 2 wrong usage, 3 server unreachable;\n"
    "of run: 4 cancelled, 5 lost, 6 still running;\n"
    "of spool drain: 4 another process drains, 5 there is more to send.\n"
    "Environment: REPRISE_URL, REPRISE_TOKEN, REPRISE_PROJECT, REPRISE_SPOOL, NO_COLOR.\n"
    "More: reprise COMMAND --help";

void add_queue_commands(CLI::App& app, const Commands& commands) {
  CLI::App& queue = add_command(app, {.name = "queue",
                                      .description = "Manage queues, push jobs and work on them",
                                      .examples = "",
                                      .group = "Queues and jobs"});
  queue.require_subcommand(1);
  add_queue_admin_commands(queue, commands);
  add_queue_stats_commands(queue, commands);
  add_queue_push_command(queue, commands);
  add_queue_jobs_commands(queue, commands);
  add_queue_claim_command(queue, commands);
  add_queue_lease_commands(queue, commands);
  add_queue_policy_command(queue, commands);
  add_queue_inspect_commands(queue, commands);
  add_queue_retry_commands(queue, commands);
}

// Output that could not be written is no success: a full disk, a closed descriptor.
int flush_output(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  fmt::print(stderr, "reprise: cannot write output: {}\n", std::strerror(errno));
  return exit_code == kExitOk ? kExitRefused : exit_code;
}

}  // namespace

void add_commands(CLI::App& app, int& exit_code) {
  app.name("reprise");
  app.description(kDescription);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.set_version_flag("--version", fmt::format("reprise {}", kVersion),
                       "Show the version and exit");
  app.require_subcommand(1);

  const Commands commands(exit_code);
  add_queue_commands(app, commands);
  add_spool_commands(app, commands);
  add_throttle_commands(app, commands);
  add_worker_commands(app, commands);
  add_run_commands(app, commands);
  add_project_commands(app, commands);
  add_timers_command(app, commands);
  add_operation_commands(app, commands);
  add_hook_commands(app, commands);
  add_config_commands(app, commands);
  add_runbook_commands(app, commands);
  add_status_command(app, commands);
  add_backup_command(app, commands);
  add_events_command(app, commands);
  add_audit_command(app, commands);
  add_completion_command(app, commands);
  add_manpage_command(app, commands);
}

int parse_and_run(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
  // Only now: a command takes over its parent's footer when it is added.
  app.footer(kExamples);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for) {
    // --help and --version end parsing this way.
    app.exit(asked_for);
    return flush_output(kExitOk);
  } catch (const CLI::ParseError& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}", explain_usage_error(app, error));
    return kExitUsage;
  }
  return flush_output(exit_code);
}

}  // namespace reprise::cli
