// backup: a copy of all data from a server that runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

// The server may have been started elsewhere: only a whole path means the same to both.
std::string absolute_path(const std::string& directory) {
  std::string path = std::filesystem::absolute(directory).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

int backup(CommandContext& context, const std::string& directory) {
  const auto reply = context.client().backup(absolute_path(directory));
  if (const int code = context.report(reply); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  const auto written = reply->json();
  const std::string where = written["directory"].string_or("");
  context.print(fmt::format("backed up {} to {} in {}\n", bytes_text(written["bytes"]),
                            escape_text(where), seconds_text(written["seconds"])));
  context.print(fmt::format("start a server on it with: reprise serve --data {}\n",
                            escape_text(shell_quoted(where))));
  return kExitOk;
}

}  // namespace

void add_backup_command(CLI::App& root, const Commands& commands) {
  auto directory = std::make_shared<std::string>();
  CLI::App& command = add_command(
      root, {.name = "backup",
             .description = "Have a running server copy all its data to a new directory",
             .examples = "  reprise backup /backups/monday\n"
                         "  reprise backup ./copy --json\n"
                         "  reprise serve --data /backups/monday     start a server on a copy\n"
                         "\n"
                         "The server itself writes the copy, on its own machine and as its own "
                         "user, while work goes on.\nAll that it acknowledged before is in it.",
             .group = "Server"});
  command.add_option("DIR", *directory, "Where to: not there yet, or empty; made absolute here")
      ->required()
      ->check([](const std::string& text) {
        return text.empty() ? std::string("the directory must not be empty") : std::string();
      });
  commands.on_run(
      command, [directory](CommandContext& context) { return backup(context, *directory); },
      Scope::whole_server);
}

}  // namespace reprise::cli
