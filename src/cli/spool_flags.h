// Flags that the commands of the spool share, and what they stand for.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/output.h"
#include "spool/outbox.h"

namespace reprise::cli {

// --spool DIR.
void add_spool_directory(CLI::App& command, std::optional<std::string>& directory);
// CLI::ValidationError: neither the flag nor the environment says where the spool is.
std::filesystem::path spool_directory(const std::optional<std::string>& flag);

// Adds --spool and --json to `command`, which has its own flags by now, and runs `run` when the
// command line selects it. No server, namespace or project is looked at.
using SpoolRun = std::function<int(const Output& output, const std::filesystem::path& directory)>;
void on_spool_run(CLI::App& command, const Commands& commands, SpoolRun run);

struct QuotaFlags {
  std::optional<std::string> max_events;
  std::optional<std::string> max_bytes;
  std::optional<std::string> when_full;
};
void add_quota_flags(CLI::App& command, QuotaFlags& flags);
// The flags have passed their checks.
spool::QuotaChange quota_change(const QuotaFlags& flags);
// The spool, made where it is missing, with what the flags say about its quota.
// CLI::ValidationError: the flags make no sense for it.
Result<spool::SpoolFiles> prepare_spool(const std::filesystem::path& directory,
                                        const QuotaFlags& flags);

}  // namespace reprise::cli
