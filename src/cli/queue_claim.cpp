// queue claim: lease jobs, waiting as long as asked.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/duration.h"
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

using std::chrono::steady_clock;

// The longest wait the API grants one request.
constexpr Duration kLongestWait = std::chrono::minutes(10);
// When the server answers early with nothing, as it may when it stops: do not ask in a tight loop.
constexpr auto kPauseBetween = std::chrono::milliseconds(100);

struct ClaimFlags {
  std::string queue;
  std::uint32_t max = 1;
  std::optional<std::string> wait;
  std::optional<std::string> lease;
  std::string lane = "any";
  std::string worker;
  bool no_header = false;
};

std::string default_worker() {
  std::array<char, 256> host{};
  // The last byte stays zero: a name that is cut is not terminated.
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

std::string claim_body(const ClaimFlags& flags, Duration wait) {
  JsonWriter json;
  json.begin_object();
  json.key("max").value(flags.max);
  json.key("wait").value(format_duration(wait));
  if (flags.lease) json.key("lease").value(*flags.lease);
  json.key("lane").value(flags.lane);
  json.key("worker").value(flags.worker);
  json.end_object();
  return json.take();
}

// Asks until there is a job, the wait is over, or something is wrong.
Result<client::Reply> claim_patiently(CommandContext& context, const ClaimFlags& flags) {
  const auto wait = flags.wait ? parse_duration(*flags.wait) : Result<Duration>(Duration::zero());
  if (!wait) return wait.error();
  const auto deadline = steady_clock::now() + *wait;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    const Duration step = std::clamp<Duration>(left, Duration::zero(), kLongestWait);
    auto reply = context.client().claim(flags.queue, claim_body(flags, step), step);
    if (!reply || reply->refused() || !reply->json()["jobs"].elements().empty()) return reply;
    if (steady_clock::now() + kPauseBetween >= deadline) return reply;
    std::this_thread::sleep_for(kPauseBetween);
  }
}

int claim(CommandContext& context, const ClaimFlags& flags) {
  const auto reply = claim_patiently(context, flags);
  if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;
  const auto jobs = reply->json()["jobs"].elements();
  if (context.json()) return context.print_json(*reply);
  if (jobs.empty()) {
    context.note("no job");
    return kExitOk;
  }

  Table table({{.title = "ID"},
               {.title = "TOKEN"},
               {.title = "ATTEMPTS", .align = Column::Align::right},
               {.title = "PAYLOAD", .may_be_cut = true}},
              context.terminal(), !flags.no_header);
  for (const auto& job : jobs) {
    table.add({Cell(context.shown_id(text_of(job["id"])), Style::bold), Cell(text_of(job["token"])),
               Cell(text_of(job["attempts"])), payload_cell(job)});
  }
  context.print(table.take_text());
  return kExitOk;
}

}  // namespace

void add_queue_claim_command(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<ClaimFlags>();
  flags->worker = default_worker();
  CLI::App& command = add_command(
      queue, {.name = "claim",
              .description = "Lease jobs to work on; ack, fail, release or extend them by token",
              .examples = "  reprise queue claim orders --max 10 --wait 30s\n"
                          "  reprise queue claim orders --json | jq -r '.jobs[].token'",
              .group = "Work"});
  add_queue_argument(command, flags->queue);
  command.add_option("--max", flags->max, "At most this many jobs")
      ->type_name("N")
      ->capture_default_str();
  add_duration(command, "--wait", flags->wait, "How long to wait for the first job [0s]");
  add_duration(command, "--lease", flags->lease, "How long to hold the jobs [the queue's]");
  command.add_option("--lane", flags->lane, "any, fresh or retry")
      ->type_name("LANE")
      ->check(CLI::IsMember({"any", "fresh", "retry"}))
      ->capture_default_str();
  command.add_option("--worker", flags->worker, "Who works, for the job's history [HOST:PID]")
      ->type_name("TEXT");
  add_no_header(command, flags->no_header);
  commands.on_run(command, [flags](CommandContext& context) { return claim(context, *flags); });
}

}  // namespace reprise::cli
