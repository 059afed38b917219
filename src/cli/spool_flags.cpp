#include "cli/spool_flags.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/flags.h"
#include "cli/terminal.h"

namespace reprise::cli {
namespace {

constexpr char kQuotaGroup[] = "Quota (kept in the spool, for everybody who adds)";
constexpr std::string_view kNone = "none";

using spool::WhenFull;

std::string name_of(WhenFull when_full) { return std::string(spool::when_full_name(when_full)); }

std::string max_events_problem(const std::string& text) {
  if (text == kNone || (is_count(text) && std::stoull(text) > 0)) return {};
  return "'" + text + "' is no whole number above 0; none lifts the limit";
}

std::string max_bytes_problem(const std::string& text) {
  if (text == kNone || parse_bytes(text).value_or(0) > 0) return {};
  return "'" + text + "' is no size (64KiB, 16MiB, 1048576); none lifts the limit";
}

}  // namespace

void add_spool_directory(CLI::App& command, std::optional<std::string>& directory) {
  command.add_option("--spool", directory, "The spool's directory [~/.local/share/reprise/spool]")
      ->envname("REPRISE_SPOOL")
      ->type_name("DIR");
}

std::filesystem::path spool_directory(const std::optional<std::string>& flag) {
  auto directory = spool::SpoolFiles::default_directory(flag);
  if (!directory) throw CLI::ValidationError(directory.error().detail);
  return *std::move(directory);
}

void on_spool_run(CLI::App& command, const Commands& commands, SpoolRun run) {
  struct Flags {
    std::optional<std::string> directory;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  add_spool_directory(command, flags->directory);
  command.add_flag("--json", flags->json, "Print JSON");
  commands.on_local_run(command, [flags, run = std::move(run)] {
    return run(Output(flags->json, Terminal::detect()), spool_directory(flags->directory));
  });
}

void add_quota_flags(CLI::App& command, QuotaFlags& flags) {
  command.add_option("--max-events", flags.max_events, "At most so many queued events; none")
      ->type_name("N")
      ->check(max_events_problem)
      ->group(kQuotaGroup);
  command.add_option("--max-bytes", flags.max_bytes, "At most so many queued bytes; none")
      ->type_name("SIZE")
      ->check(max_bytes_problem)
      ->group(kQuotaGroup);
  command
      .add_option("--when-full", flags.when_full,
                  "refuse what does not fit, or drop-oldest: make room [refuse]")
      ->type_name("WHAT")
      ->check(CLI::IsMember(
          std::vector<std::string>{name_of(WhenFull::refuse), name_of(WhenFull::drop_oldest)}))
      ->group(kQuotaGroup);
}

spool::QuotaChange quota_change(const QuotaFlags& flags) {
  using Limit = std::optional<std::uint64_t>;
  spool::QuotaChange change;
  if (flags.max_events) {
    change.max_events =
        *flags.max_events == kNone ? Limit() : Limit(std::stoull(*flags.max_events));
  }
  if (flags.max_bytes) {
    change.max_bytes = *flags.max_bytes == kNone ? Limit() : Limit(parse_bytes(*flags.max_bytes));
  }
  if (flags.when_full) {
    change.when_full = *flags.when_full == name_of(WhenFull::drop_oldest) ? WhenFull::drop_oldest
                                                                          : WhenFull::refuse;
  }
  return change;
}

Result<spool::SpoolFiles> prepare_spool(const std::filesystem::path& directory,
                                        const QuotaFlags& flags) {
  auto files = spool::SpoolFiles::create(directory);
  const auto change = quota_change(flags);
  if (!files || !change.any()) return files;
  const auto changed = spool::Outbox(*files).change_quota(change);
  if (changed) return files;
  if (changed.error().code == Errc::invalid_field) {
    throw CLI::ValidationError(changed.error().detail);
  }
  return changed.error();
}

}  // namespace reprise::cli
