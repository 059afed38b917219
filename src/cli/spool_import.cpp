// spool import: raw event files of another directory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/random.h"
#include "base/ulid.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/progress.h"
#include "cli/spool_commands.h"
#include "cli/spool_flags.h"
#include "spool/import.h"

namespace reprise::cli {
namespace {

using spool::ImportResult;

struct ImportFlags {
  std::string from;
  bool remove = false;
  QuotaFlags quota;
};

std::string json_of(const ImportResult& result) {
  JsonWriter json;
  json.begin_object();
  json.key("imported").value(result.imported);
  json.key("alreadyQueued").value(result.already_queued);
  json.key("skipped").begin_array();
  for (const auto& skipped : result.skipped) {
    json.begin_object().key("file").value(skipped.file).key("reason").value(skipped.reason);
    json.end_object();
  }
  json.end_array();
  json.key("dropped").value(result.dropped);
  json.end_object();
  return json.take() + "\n";
}

void print_result(const Output& output, const ImportResult& result) {
  if (output.json()) return output.print(json_of(result));
  output.print(fmt::format("imported {}, already queued {}, skipped {}{}\n", result.imported,
                           result.already_queued, result.skipped.size(),
                           result.dropped == 0 ? "" : fmt::format(", dropped {}", result.dropped)));
  for (const auto& skipped : result.skipped) {
    output.print_problem({.code = "invalid_request", .message = skipped.reason}, skipped.file);
  }
}

int import(const Output& output, const std::filesystem::path& directory, const ImportFlags& flags) {
  auto files = prepare_spool(directory, flags.quota);
  if (!files) return output.fail(files.error());
  spool::Outbox outbox(*files);
  const SteadyWallClock clock;
  SystemRandom random;
  UlidSource ids(random);
  ProgressBar progress(output.terminal().err_is_tty && !output.json());
  ImportResult result;
  const Status imported = spool::import_events(
      flags.from, outbox, ids, clock,
      {.remove = flags.remove,
       .progress =
           [&](std::uint64_t done, std::uint64_t found) {
             progress.update({.done = done, .total = found, .count = done, .unit = "files"});
           }},
      result);
  progress.clear();
  if (!imported && imported.error().code == Errc::invalid_field) {
    throw CLI::ValidationError(imported.error().detail);
  }
  print_result(output, result);
  if (!imported) return output.fail(imported.error());
  return result.skipped.empty() ? kExitOk : kExitRefused;
}

}  // namespace

void add_spool_import_command(CLI::App& spool, const Commands& commands) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App& command = add_command(
      spool, {.name = "import",
              .description = "Take over a directory of event files, one JSON object each",
              .examples = "  reprise spool import ./outbox\n"
                          "  reprise spool import /var/lib/app/pending --remove",
              .group = "Events"});
  command.add_option("DIR", flags->from, "A directory with files *.json")
      ->required()
      ->type_name("")
      ->check(CLI::ExistingDirectory);
  command.add_flag("--remove", flags->remove, "Delete the files that are in the spool then");
  add_quota_flags(command, flags->quota);
  on_spool_run(command, commands, [flags](const Output& output, const auto& directory) {
    return import(output, directory, *flags);
  });
}

}  // namespace reprise::cli
