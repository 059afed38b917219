// events: what happens on the server, now or as it happens.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/interrupt.h"
#include "cli/reply_text.h"
#include "cli/table.h"
#include "client/server_sent_events.h"

namespace reprise::cli {
namespace {

using client::ServerSentEvent;
using std::chrono::milliseconds;

// Without --follow: this long without an event, and the remembered ones are all there.
constexpr milliseconds kIdleEnds{200};
constexpr milliseconds kFirstReconnect{200};
constexpr milliseconds kLastReconnect{5000};

struct EventsFlags {
  bool follow = false;
  bool replay = false;
  std::vector<std::string> types;
  std::optional<std::string> queue;
  std::uint64_t limit = 0;  // 0: none
  bool no_header = false;

  // Begin with what the server remembers.
  bool from_start() const { return !follow || replay; }
};

// Those of workers may be told without "worker:", all others without "queue:".
std::string_view kind_of(std::string_view short_type) {
  constexpr std::array<std::string_view, 5> kOfWorkers = {"started", "stopped", "run_started",
                                                          "run_ended", "error"};
  return std::ranges::find(kOfWorkers, short_type) != kOfWorkers.end() ? "worker:" : "queue:";
}

// "dead,failed" and "queue:dead" alike.
std::string full_types(const std::vector<std::string>& types) {
  std::string all;
  for (const auto& list : types) {
    for (auto type : CLI::detail::split(list, ',')) {
      if (type.find(':') == std::string::npos) type.insert(0, kind_of(type));
      all += (all.empty() ? "" : ",") + type;
    }
  }
  return all;
}

client::QueryParameters filter_of(const EventsFlags& flags, const CommandContext& context) {
  client::QueryParameters filter;
  if (!context.flags().ns.empty()) filter.emplace_back("namespace", context.flags().ns);
  if (flags.queue) filter.emplace_back("queue", *flags.queue);
  if (!flags.types.empty()) filter.emplace_back("type", full_types(flags.types));
  return filter;
}

// "attempts=2 error=timeout": whatever an event has beyond what every event has.
std::string detail_of(JsonView data) {
  std::string detail;
  for (const auto& [name, value] : data.members()) {
    const bool common =
        name == "type" || name == "at" || name == "namespace" || name == "queue" || name == "id";
    if (common || value.is_null()) continue;
    detail += (detail.empty() ? "" : " ") + name + "=" + text_of(value);
  }
  return detail;
}

Style style_of(std::string_view type, JsonView data) {
  if (type == "worker:run_ended") {
    return data["status"].string_or("") == "succeeded" ? Style::green : Style::yellow;
  }
  if (type == "queue:dead" || type == "queue:breaker_open") return Style::red;
  if (type == "worker:error") return Style::red;
  if (type == "queue:failed" || type == "queue:breaker_trial") return Style::yellow;
  if (type == "queue:completed" || type == "queue:breaker_closed") return Style::green;
  return Style::plain;
}

class EventPrinter {
 public:
  EventPrinter(CommandContext& context, const EventsFlags& flags)
      : context_(context),
        limit_(flags.limit),
        from_start_(flags.from_start()),
        table_({{.title = "AT", .min_width = 24},
                {.title = "TYPE", .min_width = 18},
                {.title = "NAMESPACE"},
                {.title = "QUEUE", .min_width = 12},
                {.title = "ID", .min_width = 8},
                {.title = "DETAIL", .may_be_cut = true}},
               context.terminal(), !flags.no_header) {}

  void print(const ServerSentEvent& event) {
    if (done()) return;
    const JsonView data(event.data);
    if (event.type == "lost") {
      // Asked for all it remembers, the server also tells how many it has forgotten.
      const bool forgotten = from_start_ && last_id_.empty();
      if (!forgotten) context_.note(fmt::format("lost {} events", text_of(data["lost"])));
      return;
    }
    last_id_ = event.id;
    ++count_;
    if (context_.json()) {
      context_.print(event.data + "\n");
    } else {
      table_.add({Cell(text_of(data["at"])), Cell(event.type, style_of(event.type, data)),
                  Cell(text_of(data["namespace"])), Cell(text_of(data["queue"])),
                  Cell(context_.shown_id(text_of(data["id"])), Style::bold),
                  Cell(detail_of(data))});
      context_.print(table_.take_text());
    }
    // Whoever reads the pipe wants it now.
    std::fflush(stdout);
  }

  // Nothing to tell is told with the header alone.
  void finish() {
    if (!context_.json()) context_.print(table_.take_text());
  }

  bool done() const { return limit_ != 0 && count_ >= limit_; }
  const std::string& last_id() const { return last_id_; }

 private:
  CommandContext& context_;
  std::uint64_t limit_;
  bool from_start_;
  std::uint64_t count_ = 0;
  std::string last_id_;
  Table table_;
};

void sleep_unless_interrupted(milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (!interrupted() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(milliseconds(20));
  }
}

int events(CommandContext& context, const EventsFlags& flags) {
  // An interrupt is how `events --follow` normally ends.
  catch_interrupts(NextInterrupt::ignored);
  EventPrinter printer(context, flags);
  client::EventParser parser([&](const ServerSentEvent& event) { printer.print(event); });
  // Each connection that begins puts the waiting between reconnects back to its start.
  bool ever_connected = false;
  milliseconds pause = kFirstReconnect;
  const client::HttpClient::StreamHandler handler{
      .on_bytes = [&](std::string_view bytes) { parser.feed(bytes); },
      .keep_going =
          [&](std::optional<milliseconds> idle) {
            if (idle) {
              ever_connected = true;
              pause = kFirstReconnect;
            }
            const bool idle_ends = !flags.follow && idle && *idle >= kIdleEnds;
            return !interrupted() && !printer.done() && !idle_ends;
          }};
  const auto filter = filter_of(flags, context);
  const std::string begin = flags.from_start() ? "0" : "";
  while (true) {
    const auto& after = printer.last_id().empty() ? begin : printer.last_id();
    const auto reply = context.client().events(filter, after, handler);
    if (interrupted() || printer.done()) return kExitOk;
    if (reply && reply->status == 200) {
      ever_connected = true;
      if (!flags.follow) {
        printer.finish();
        return kExitOk;
      }
    }
    // A server that was there comes back; one that never was, or says no, is an error.
    const bool refused = reply && reply->status != 200 && reply->status != 503;
    if (refused || !ever_connected || !flags.follow) return context.report(reply);
    parser.restart();
    sleep_unless_interrupted(pause);
    pause = std::min(pause * 2, kLastReconnect);
  }
}

}  // namespace

void add_events_command(CLI::App& root, const Commands& commands) {
  auto flags = std::make_shared<EventsFlags>();
  CLI::App& command = add_command(
      root,
      {.name = "events",
       .description =
           "Show what happens: jobs pushed, taken, completed, failed, dead, runs of workers, ...",
       .examples = "  reprise events\n"
                   "  reprise events --follow --queue orders\n"
                   "  reprise events --follow --type failed,dead --json\n"
                   "  reprise events --follow --type breaker_open,breaker_closed",
       .group = "Server"});
  auto* follow =
      command.add_flag("-f,--follow", flags->follow, "Go on with new events until interrupted");
  command
      .add_flag("--replay", flags->replay, "With --follow: first the events the server remembers")
      ->needs(follow);
  command
      .add_option("--type", flags->types,
                  "Only these types: dead, queue:dead, worker:error; may be repeated")
      ->allow_extra_args(false)
      ->type_name("TYPE");
  command.add_option("--queue", flags->queue, "Only this queue")->type_name("NAME");
  command.add_option("--limit", flags->limit, "End after this many events")->type_name("N");
  add_no_header(command, flags->no_header);
  commands.on_run(
      command, [flags](CommandContext& context) { return events(context, *flags); },
      Scope::whole_server);
}

}  // namespace reprise::cli
