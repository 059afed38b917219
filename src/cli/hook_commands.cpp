// hook test, replay, show: trying a script before a queue has it, and looking at the one it has.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/hook_choice.h"
#include "cli/hook_decision.h"
#include "cli/hook_record.h"
#include "cli/hook_samples.h"
#include "cli/input_file.h"
#include "cli/job_selection.h"
#include "cli/reply_fields.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

using client::Reply;

constexpr char kGroup[] = "Hooks";
constexpr char kOnFailureFile[] = "--on-failure-file";
constexpr char kOnEnqueueFile[] = "--on-enqueue-file";
constexpr auto kRight = Column::Align::right;
constexpr std::uint64_t kMaxReplayed = 10'000;
// Kinds of decisions that are shown; scripts may give each job a reason of its own.
constexpr std::size_t kGroupsShown = 20;

struct TestFlags {
  std::string queue;
  std::optional<std::string> on_failure_file;
  std::optional<std::string> on_enqueue_file;
  HookChoiceFlags choice;
  std::vector<std::string> samples;
};

struct ReplayFlags {
  std::string queue;
  std::optional<std::string> on_failure_file;
  FilterFlags filter;
  std::optional<std::string> status;
  std::optional<std::uint64_t> limit;
  bool verbose = false;
  bool no_header = false;
};

// A script that is to be tried: null is the one that the queue has.
void write_script(JsonWriter& json, HookKind hook, const std::optional<std::string>& source) {
  json.key(hook_name(hook));
  source ? json.value(*source) : json.null();
}

// The reply as a script reads it, each field by its place.
void print_fields(const CommandContext& context, JsonView reply) {
  Record record(context.terminal());
  for (const auto& [name, value] : reply.members()) add_fields(record, name, value);
  context.print(record.text());
}

bool any_failed(const std::vector<JsonView>& results) {
  return std::ranges::any_of(results,
                             [](JsonView result) { return hook_decision(result).failed(); });
}

// --- test

class HookTest {
 public:
  HookTest(CommandContext& context, const TestFlags& flags) : context_(context), flags_(flags) {}

  int run() {
    check_standard_input();
    HookKind hook{};
    if (const int code = choose_hook(hook); code != kExitOk) return code;
    const auto reply = context_.client().try_hook(flags_.queue, "test", body(hook));
    if (const int code = context_.report(reply, flags_.queue); code != kExitOk) return code;
    print(*reply);
    return any_failed(reply->json()["results"].elements()) ? kExitRefused : kExitOk;
  }

 private:
  void check_standard_input() const {
    auto paths = flags_.samples;
    paths.push_back(flags_.on_failure_file.value_or(""));
    paths.push_back(flags_.on_enqueue_file.value_or(""));
    check_one_standard_input(paths);
  }

  // kExitOk, or the exit code after telling why the queue cannot be asked which hooks it has.
  int choose_hook(HookKind& hook) {
    hook = flags_.on_enqueue_file || flags_.choice.on_enqueue ? HookKind::on_enqueue
                                                              : HookKind::on_failure;
    if (flags_.on_failure_file || flags_.on_enqueue_file || flags_.choice.any()) return kExitOk;
    const auto queue = context_.client().show_queue(flags_.queue);
    if (const int code = context_.report(queue, flags_.queue); code != kExitOk) return code;
    hook = chosen_hook(flags_.choice, queue->json());
    return kExitOk;
  }

  std::string body(HookKind hook) const {
    JsonWriter json;
    json.begin_object();
    write_script(json, hook, script());
    json.key("samples").begin_array();
    for (const auto& file : flags_.samples) {
      const auto samples = parse_hook_samples(read_text_file("--sample", file), hook);
      if (!samples) throw CLI::ValidationError("--sample", file + ": " + samples.error().detail);
      for (const auto& sample : *samples) json.raw(sample);
    }
    json.end_array().end_object();
    return json.take();
  }

  std::optional<std::string> script() const {
    if (flags_.on_failure_file) return read_script_file(kOnFailureFile, *flags_.on_failure_file);
    if (flags_.on_enqueue_file) return read_script_file(kOnEnqueueFile, *flags_.on_enqueue_file);
    return std::nullopt;
  }

  void print(const Reply& reply) const {
    if (context_.json()) {
      context_.print_json(reply);
    } else if (!context_.terminal().out_is_tty) {
      print_fields(context_, reply.json());
    } else {
      print_table(reply.json()["results"].elements());
    }
  }

  void print_table(const std::vector<JsonView>& results) const {
    Table table({{.title = "INDEX", .align = kRight}, {.title = "DECISION"}, {.title = "DETAIL"}},
                context_.terminal(), true);
    for (const auto& result : results) {
      const auto decision = hook_decision(result);
      const Cell index(text_of(result["index"]));
      table.add({index, decision.what_cell(), Cell(decision.detail)});
      for (const auto& line : result["log"].elements()) {
        table.add({index, Cell("log", Style::dim), Cell(text_of(line))});
      }
    }
    context_.print(table.take_text());
  }

  CommandContext& context_;
  const TestFlags& flags_;
};

// --- replay

std::string replay_body(const ReplayFlags& flags) {
  std::optional<std::string> source;
  if (flags.on_failure_file) {
    source = read_script_file(kOnFailureFile, *flags.on_failure_file);
  }
  JsonWriter json;
  json.begin_object();
  write_script(json, HookKind::on_failure, source);
  json.key("filter").begin_object();
  if (flags.status) json.key("status").value(*flags.status);
  write_filter_members(json, flags.filter);
  json.end_object();
  if (flags.limit) json.key("limit").value(*flags.limit);
  json.end_object();
  return json.take();
}

// "dead: max_attempts", or "failed".
std::string was_text(JsonView was) {
  const std::string reason = text_of(was["reason"]);
  return text_of(was["status"]) + (reason.empty() ? "" : ": " + reason);
}

void print_each_job(const CommandContext& context, const std::vector<JsonView>& decisions,
                    bool header) {
  Table table({{.title = "ID"},
               {.title = "WAS", .may_be_cut = true},
               {.title = "DECISION"},
               {.title = "DETAIL", .may_be_cut = true}},
              context.terminal(), header);
  for (const auto& result : decisions) {
    const auto decision = hook_decision(result);
    table.add({Cell(context.shown_id(text_of(result["id"])), Style::bold),
               Cell(was_text(result["was"])), decision.what_cell(), Cell(decision.detail)});
  }
  context.print(table.take_text());
}

void print_groups(const CommandContext& context, JsonView reply,
                  const std::vector<JsonView>& decisions, bool header) {
  const auto examined = reply["examined"].unsigned_integer().value_or(0);
  context.print(fmt::format(
      "{} {} would have decided for {} {}:\n", escape_text(text_of(reply["hook"])),
      escape_text(text_of(reply["version"])), examined, examined == 1 ? "job" : "jobs"));
  Table table({{.title = "DECISION"},
               {.title = "JOBS", .align = kRight},
               {.title = "EXAMPLE"},
               {.title = "DETAIL", .may_be_cut = true}},
              context.terminal(), header);
  const auto groups = grouped_decisions(decisions);
  for (std::size_t i = 0; i < std::min(groups.size(), kGroupsShown); ++i) {
    const auto& group = groups[i];
    table.add({group.decision.what_cell(), Cell(std::to_string(group.jobs), Style::bold),
               Cell(context.shown_id(group.example)), Cell(group.decision.detail)});
  }
  context.print(table.take_text());
  if (groups.size() > kGroupsShown) {
    context.note(fmt::format("and {} decisions of other kinds: --verbose shows each job",
                             groups.size() - kGroupsShown));
  }
}

void print_replay(const CommandContext& context, JsonView reply,
                  const std::vector<JsonView>& decisions, const ReplayFlags& flags) {
  const bool to_people = context.terminal().out_is_tty;
  if (flags.verbose) {
    print_each_job(context, decisions, !flags.no_header);
  } else if (!to_people) {
    print_fields(context, reply);
  }
  if (to_people && !decisions.empty()) {
    if (flags.verbose) context.print("\n");
    print_groups(context, reply, decisions, !flags.no_header);
  }
  if (decisions.empty()) context.note("no jobs to ask it about");
  if (const auto lost = reply["unreadable"].unsigned_integer().value_or(0); lost > 0) {
    context.note(fmt::format("{} {} cannot be read and had to be left out", lost,
                             lost == 1 ? "job" : "jobs"));
  }
  if (reply["truncated"].is_true()) {
    context.note(fmt::format("there are more jobs: --limit N, up to {}", kMaxReplayed));
  }
}

int replay(CommandContext& context, const ReplayFlags& flags) {
  const auto reply = context.client().try_hook(flags.queue, "replay", replay_body(flags));
  if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;
  const auto decisions = reply->json()["decisions"].elements();
  if (context.json()) {
    context.print_json(*reply);
  } else {
    print_replay(context, reply->json(), decisions, flags);
  }
  return any_failed(decisions) ? kExitRefused : kExitOk;
}

// --- show

// For a terminal: lines and indentation stay, but no other control characters.
std::string harmless_source(std::string_view source) {
  std::string out;
  while (!source.empty()) {
    const std::size_t end = std::min(source.find_first_of("\n\t"), source.size());
    out += escape_text(source.substr(0, end));
    if (end < source.size()) out += source[end];
    source.remove_prefix(std::min(end + 1, source.size()));
  }
  if (!out.empty() && !out.ends_with('\n')) out += '\n';
  return out;
}

void print_source_as_json(const CommandContext& context, HookKind hook, const std::string& version,
                          JsonView source) {
  JsonWriter json;
  json.begin_object().key("hook").value(hook_name(hook)).key("version").value(version);
  json.key("source").raw(source.raw()).end_object();
  context.print(json.take() + "\n");
}

int show(CommandContext& context, const std::string& queue, const HookChoiceFlags& choice) {
  const auto reply = context.client().show_queue(queue);
  if (const int code = context.report(reply, queue); code != kExitOk) return code;
  const HookKind hook = chosen_hook(choice, reply->json());
  const std::string version = version_of_hook(reply->json(), hook);
  if (version.empty()) {
    const std::string missing = choice.any() ? std::string(hook_name(hook)) + " hook" : "hook";
    context.print_problem({.code = "invalid_request",
                           .message = fmt::format("queue '{}' has no {}", queue, missing)});
    return kExitRefused;
  }
  const auto source = reply->json()["config"][hook_name(hook)];
  if (context.json()) {
    print_source_as_json(context, hook, version, source);
  } else if (context.terminal().out_is_tty) {
    context.print(fmt::format("-- {} {}\n", hook_name(hook), escape_text(version)));
    context.print(harmless_source(source.string_or("")));
  } else {
    context.print(source.string_or(""));
  }
  return kExitOk;
}

// --- flags

CLI::Option* add_script(CLI::App& command, const char* flag, std::optional<std::string>& target,
                        const char* description) {
  return command.add_option(flag, target, description)->type_name("FILE");
}

void add_test(CLI::App& hook, const Commands& commands) {
  auto flags = std::make_shared<TestFlags>();
  CLI::App& command = add_command(
      hook,
      {.name = "test",
       .description = "Run a script against samples, with the limits and config of a queue",
       .examples = "  reprise hook test orders --on-failure-file new.lua --sample job.json\n"
                   "  reprise hook test orders --on-enqueue-file new.lua --sample samples/*.json\n"
                   "  reprise queue job orders 7ZK3 --json | reprise hook test orders --sample -\n"
                   "  reprise hook test orders --on-enqueue --sample job.json --json",
       .group = kGroup});
  add_queue_argument(command, flags->queue);
  auto* on_failure = add_script(command, kOnFailureFile, flags->on_failure_file,
                                "A script with on_failure; -: standard input [the queue's]");
  auto* on_enqueue = add_script(command, kOnEnqueueFile, flags->on_enqueue_file,
                                "A script with on_enqueue; -: standard input")
                         ->excludes(on_failure);
  add_hook_choice_flags(command, flags->choice);
  for (const char* flag : {"--on-failure", "--on-enqueue"}) {
    command.get_option(flag)->excludes(on_failure)->excludes(on_enqueue);
  }
  command
      .add_option("--sample", flags->samples,
                  "A file with a sample, an array of samples, or one in each line; -: standard "
                  "input; may be repeated")
      ->required()
      ->type_name("FILE");
  commands.on_run(command,
                  [flags](CommandContext& context) { return HookTest(context, *flags).run(); });
}

void add_replay(CLI::App& hook, const Commands& commands) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App& command = add_command(
      hook, {.name = "replay",
             .description = "Tell what an on_failure would have decided for dead or failed jobs; "
                            "changes nothing",
             .examples = "  reprise hook replay orders --on-failure-file new.lua\n"
                         "  reprise hook replay orders --on-failure-file new.lua --error timeout\n"
                         "  reprise hook replay orders --status failed --limit 10000 --verbose",
             .group = kGroup});
  add_queue_argument(command, flags->queue);
  add_script(command, kOnFailureFile, flags->on_failure_file,
             "A script with on_failure; -: standard input [the queue's]");
  command.add_option("--status", flags->status, "dead, or failed: those that cool down [dead]")
      ->type_name("STATUS")
      ->check(CLI::IsMember({"dead", "failed"}));
  command.add_option("--limit", flags->limit, "At most this many, the longest dead first [1000]")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, kMaxReplayed));
  command.add_flag("--verbose", flags->verbose, "A line for each job");
  add_no_header(command, flags->no_header);
  add_filter_flags(command, flags->filter);
  commands.on_run(command, [flags](CommandContext& context) { return replay(context, *flags); });
}

void add_show(CLI::App& hook, const Commands& commands) {
  struct Flags {
    std::string queue;
    HookChoiceFlags choice;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      add_command(hook, {.name = "show",
                         .description = "Print the source of a queue's hook as it is stored",
                         .examples = "  reprise hook show orders\n"
                                     "  reprise hook show orders --on-enqueue > enqueue.lua\n"
                                     "  reprise hook show orders --json | jq -r .version",
                         .group = kGroup});
  add_queue_argument(command, flags->queue);
  add_hook_choice_flags(command, flags->choice);
  commands.on_run(command, [flags](CommandContext& context) {
    return show(context, flags->queue, flags->choice);
  });
}

}  // namespace

void add_hook_commands(CLI::App& root, const Commands& commands) {
  CLI::App& hook =
      add_command(root, {.name = "hook",
                         .description = "Try the Lua hooks of queues, and look at them",
                         .examples = "",
                         .group = kGroup});
  hook.require_subcommand(1);
  add_test(hook, commands);
  add_replay(hook, commands);
  add_show(hook, commands);
}

}  // namespace reprise::cli
