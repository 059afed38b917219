// Commands: how a command joins the CLI11 app, and the functions that add them, a file for each
// group of commands. A command's options live in a shared struct that its callback holds.
//
//   auto flags = std::make_shared<Flags>();
//   CLI::App& command = add_command(parent, {.name = "list", …});
//   command.add_flag("--all", flags->all, "…");
//   commands.on_run(command, [flags](CommandContext& context) { return list(context, *flags); });
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/command_context.h"

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::cli {

struct CommandInfo {
  std::string name;
  std::string description;
  std::string examples;  // one a line
  std::string group;     // the heading in the parent's help; "" hides the command
};

CLI::App& add_command(CLI::App& parent, const CommandInfo& info);

class Commands {
 public:
  using Run = std::function<int(CommandContext&)>;

  // `exit_code` receives what the command that runs returns.
  explicit Commands(int& exit_code) : exit_code_(exit_code) {}

  // Adds the common flags to `command`, which has its own by now, and runs `run` when the command
  // line selects it, and none of the commands below it.
  void on_run(CLI::App& command, Run run, Scope scope = Scope::one_namespace) const;
  // The same for a command that needs no server and none of the common flags.
  void on_local_run(CLI::App& command, std::function<int()> run) const;

 private:
  int& exit_code_;
};

// `queue` is the command group; `root` the whole app.
void add_queue_admin_commands(CLI::App& queue, const Commands& commands);
void add_queue_stats_commands(CLI::App& queue, const Commands& commands);
void add_queue_push_command(CLI::App& queue, const Commands& commands);
void add_queue_claim_command(CLI::App& queue, const Commands& commands);
void add_queue_lease_commands(CLI::App& queue, const Commands& commands);
void add_queue_jobs_commands(CLI::App& queue, const Commands& commands);
void add_queue_policy_command(CLI::App& queue, const Commands& commands);
void add_queue_inspect_commands(CLI::App& queue, const Commands& commands);
void add_queue_retry_commands(CLI::App& queue, const Commands& commands);
void add_hook_commands(CLI::App& root, const Commands& commands);
void add_config_commands(CLI::App& root, const Commands& commands);
void add_runbook_commands(CLI::App& root, const Commands& commands);
void add_throttle_commands(CLI::App& root, const Commands& commands);
void add_operation_commands(CLI::App& root, const Commands& commands);
void add_worker_commands(CLI::App& root, const Commands& commands);
void add_run_commands(CLI::App& root, const Commands& commands);
void add_project_commands(CLI::App& root, const Commands& commands);
void add_timers_command(CLI::App& root, const Commands& commands);
void add_audit_command(CLI::App& root, const Commands& commands);
void add_events_command(CLI::App& root, const Commands& commands);
void add_status_command(CLI::App& root, const Commands& commands);
void add_backup_command(CLI::App& root, const Commands& commands);
void add_completion_command(CLI::App& root, const Commands& commands);
void add_manpage_command(CLI::App& root, const Commands& commands);

}  // namespace reprise::cli
