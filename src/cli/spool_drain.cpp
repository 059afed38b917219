// spool drain: sends what is queued, once or for as long as it is wanted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "cli/drain_report.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/spool_commands.h"
#include "cli/spool_flags.h"
#include "cli/warnings.h"
#include "client/url.h"
#include "spool/drain.h"
#include "spool/drain_lock.h"
#include "spool/event.h"
#include "spool/follow.h"

namespace reprise::cli {
namespace {

using spool::DrainResult;
using spool::SpoolFiles;

constexpr char kIngestPath[] = "/api/events/ingest";

struct DrainFlags {
  std::optional<std::string> directory;
  std::optional<std::string> to;
  spool::DrainOptions options;
  bool follow = false;
};

// A signal may arrive at any moment, so a wait looks for it often.
class InterruptiblePauses final : public spool::Pauses {
 public:
  bool wait(Duration time) override {
    constexpr Duration kSlice = std::chrono::milliseconds(50);
    const auto end = std::chrono::steady_clock::now() + time;
    while (!cli::interrupted()) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return true;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kSlice));
    }
    return false;
  }
  bool interrupted() const override { return cli::interrupted(); }
};

// The address of --to, or Reprise's own. The project here matters only for the latter.
std::string endpoint_url(const CommandContext& context, const DrainFlags& flags) {
  if (flags.to) return *flags.to;
  const auto server = client::parse_server_url(context.flags().server);
  const auto place = choose_namespace(context.flags().ns, current_directory());
  if (!server) throw CLI::ValidationError("--server: " + server.error().detail);
  if (!place) throw CLI::ValidationError(place.error().detail);
  return server->base + kIngestPath + client::encode_query({{"namespace", place->ns}});
}

std::unique_ptr<spool::IngestEndpoint> make_endpoint(const CommandContext& context,
                                                     const DrainFlags& flags) {
  auto endpoint = spool::make_http_ingest(endpoint_url(context, flags), context.token(),
                                          [] { return !interrupted(); });
  if (!endpoint) {
    throw CLI::ValidationError((flags.to ? "--to: " : "--server: ") + endpoint.error().detail);
  }
  return *std::move(endpoint);
}

void print_counts(const Output& output, const DrainResult& result) {
  output.print(output.json() ? drain_json(result) : drain_text(result));
  if (const auto note = deaths_note(result); !note.empty()) output.note(note);
}

int print_result(const Output& output, const DrainResult& result) {
  print_counts(output, result);
  if (const auto problem = drain_problem(result)) output.print_problem(*problem);
  return drain_exit_code(result);
}

// One run, or with --follow one after the other.
Result<DrainResult> drain_files(const Output& output, SpoolFiles& files,
                                spool::IngestEndpoint& endpoint, const DrainFlags& flags) {
  const SteadyWallClock clock;
  SystemRandom random;
  InterruptiblePauses pauses;
  ProgressBar progress(output.terminal().err_is_tty && !output.json());
  Warnings warnings(output, progress);
  const spool::DrainWatcher watcher{
      .warn = [&](const std::string& text) { warnings.add(text); },
      .progress =
          [&](std::uint64_t done, std::uint64_t found) {
            progress.update({.done = done, .total = found, .count = done, .unit = "events"});
          }};
  spool::Drain drain({files, endpoint, pauses, clock, random}, flags.options, watcher);
  if (!flags.follow) {
    auto result = drain.run();
    warnings.end();
    return result;
  }

  auto watch = spool::QueueWatch::start(files);
  if (!watch) return watch.error();
  const auto wait_for_files = [&](Duration longest) {
    progress.clear();
    warnings.end();
    return watch->wait(longest, pauses);
  };
  auto result = spool::follow(drain, wait_for_files, clock, pauses, watcher);
  warnings.end();
  return result;
}

// Without a spool there is nothing to send; --follow waits for the first event.
Result<std::optional<SpoolFiles>> open_spool(const DrainFlags& flags) {
  const auto directory = spool_directory(flags.directory);
  if (!flags.follow) return SpoolFiles::open(directory);
  auto files = SpoolFiles::create(directory);
  if (!files) return files.error();
  return std::optional<SpoolFiles>(*std::move(files));
}

int drain(CommandContext& context, const DrainFlags& flags) {
  const auto endpoint = make_endpoint(context, flags);
  auto files = open_spool(flags);
  if (!files) return context.fail(files.error());
  if (!*files) return print_result(context, {});
  const auto lock = spool::DrainLock::acquire(**files, SteadyWallClock().now());
  if (!lock) {
    const int code = context.fail(lock.error());
    return lock.error().code == Errc::spool_locked ? kExitSpoolLocked : code;
  }
  catch_interrupts(NextInterrupt::ignored);
  auto result = drain_files(context, **files, *endpoint, flags);
  if (!result) return context.fail(result.error());
  // Then an interrupt is the normal end.
  if (flags.follow && result->end == spool::DrainEnd::interrupted) {
    result->end = spool::DrainEnd::finished;
    print_counts(context, *result);
    return kExitOk;
  }
  return print_result(context, *result);
}

}  // namespace

void add_spool_drain_command(CLI::App& spool, const Commands& commands) {
  auto flags = std::make_shared<DrainFlags>();
  CLI::App& command = add_command(
      spool,
      {.name = "drain",
       .description = "Send what is queued to an ingest endpoint, in batches",
       .examples = "  reprise spool drain\n"
                   "  reprise spool drain --server https://queue.example -n shop\n"
                   "  reprise spool drain --to https://events.example/ingest --max-attempts 3\n"
                   "  reprise spool drain --follow        stay, and send what is added",
       .group = "Events"});
  command
      .add_option("--to", flags->to,
                  fmt::format("The whole address of an endpoint [{} of --server]", kIngestPath))
      ->type_name("URL");
  command
      .add_option("--batch", flags->options.batch,
                  "At most so many events in one request, 1 to 100")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, spool::kMaxBatchEvents).description(""));
  command
      .add_option("--max-attempts", flags->options.max_attempts,
                  "An event that was rejected so often is dead-lettered")
      ->type_name("N")
      ->capture_default_str()
      ->check(
          CLI::Range(std::uint32_t{1}, std::numeric_limits<std::uint32_t>::max()).description(""));
  command.add_flag("--follow", flags->follow, "Stay: send what is added, until interrupted");
  add_spool_directory(command, flags->directory);
  // The namespace is looked for where it is needed.
  commands.on_run(
      command, [flags](CommandContext& context) { return drain(context, *flags); },
      Scope::whole_server);
}

}  // namespace reprise::cli
