#include "daemon/salvage_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "base/json_writer.h"
#include "daemon/salvage_text.h"
#include "storage/durable/salvage.h"

namespace reprise::daemon {
namespace {

constexpr int kExitAllKept = 0;
constexpr int kExitLost = 1;
constexpr int kExitUsage = 2;
constexpr int kExitImpossible = 3;

struct SalvageFlags {
  SalvagePaths paths;
  bool json = false;
  bool no_header = false;
};

// One line on stderr that is drawn over itself, if somebody is there to see it.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (drawn_) draw("");
  }
  void update(std::string_view step, std::uint64_t jobs) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || (jobs != 0 && now < next_)) return;
    next_ = now + std::chrono::milliseconds(100);
    draw(jobs == 0 ? std::string(step) : fmt::format("{}: {} jobs", step, jobs));
  }

 private:
  void draw(std::string_view text) {
    drawn_ = true;
    fmt::print(stderr, "\r{}\x1b[K", text);
    std::fflush(stderr);
  }

  const bool shown_ = isatty(STDERR_FILENO) == 1;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

Result<storage::SalvageReport> run(const SalvagePaths& paths) {
  ProgressLine line;
  return storage::salvage(
      {.from = paths.from,
       .to = paths.to,
       .progress = [&](std::string_view step, std::uint64_t jobs) { line.update(step, jobs); }});
}

int fail(const Error& error, bool json) {
  const std::string_view code = errc_info(error.code).wire_name;
  if (json) {
    JsonWriter out;
    out.begin_object().key("error").begin_object();
    out.key("code").value(code).key("message").value(error.detail).end_object().end_object();
    fmt::print(stderr, "{}\n", out.take());
  } else {
    fmt::print(stderr, "reprise: {} ({})\n", error.detail, code);
  }
  return error.code == Errc::invalid_field ? kExitUsage : kExitImpossible;
}

int salvage(const SalvageFlags& flags) {
  const auto report = run(flags.paths);
  if (!report) return fail(report.error(), flags.json);
  if (flags.json) {
    fmt::print("{}\n", salvage_json(*report, flags.paths));
  } else {
    fmt::print("{}", salvage_table(*report, isatty(STDOUT_FILENO) == 1, !flags.no_header));
    std::fflush(stdout);
    for (const std::string& note : salvage_notes(*report, flags.paths)) {
      fmt::print(stderr, "{}\n", note);
    }
  }
  return report->lost_anything() ? kExitLost : kExitAllKept;
}

std::string check_not_empty(const std::string& path) {
  return path.empty() ? std::string("the path must not be empty") : std::string();
}

}  // namespace

void add_salvage_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "salvage", "Copy what can be read of a damaged data directory into a new one");
  const auto flags = std::make_shared<SalvageFlags>();
  command->add_option("--data", flags->paths.from, "The damaged data directory; it is only read")
      ->type_name("DIR")
      ->required()
      ->check(check_not_empty);
  command->add_option("--to", flags->paths.to, "The new one: not there yet, or empty")
      ->type_name("NEW")
      ->required()
      ->check(check_not_empty);
  command->add_flag("--no-header", flags->no_header, "Leave the header line out");
  command->add_flag("--json", flags->json, "Print the report as JSON");
  command->footer(
      "Works without a server, on a directory that none is running on. Shows what was kept and "
      "lost "
      "by queue.\n"
      "\n"
      "Examples:\n"
      "  reprise salvage --data /var/lib/reprise --to /var/lib/reprise.new\n"
      "  reprise salvage --data ./broken --to ./mended --json\n"
      "\n"
      "Exit codes: 0 everything was kept, 1 something was lost, 2 wrong usage, 3 not possible: in "
      "use, or\nnothing can be read, or NEW cannot be written.");
  command->callback([flags, &exit_code] { exit_code = salvage(*flags); });
}

}  // namespace reprise::daemon
