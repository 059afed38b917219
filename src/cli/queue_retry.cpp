// queue retry, purge: one road, two verbs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/job_choice.h"
#include "cli/job_selection.h"
#include "cli/operation_wait.h"
#include "cli/reply_text.h"
#include "cli/selection_report.h"

namespace reprise::cli {
namespace {

using client::Reply;

constexpr char kGroup[] = "Failures";
// What the API takes in one call.
constexpr std::size_t kMaxIds = 1000;
// How long the first call may wait while a person looks at a bar: then the bar begins to move.
constexpr char kFirstWait[] = "300ms";

struct SelectionFlags {
  std::string queue;
  std::vector<std::string> ids;
  bool all = false;
  FilterFlags filter;
  std::optional<std::string> status;
  std::optional<std::uint64_t> limit;
  std::optional<std::string> rate;
  bool dry_run = false;
  bool wait = false;
  bool yes = false;

  bool by_filter() const { return all || filter.any(); }
  // Flags that mean nothing without --all or a filter.
  bool any_of_filter_only() const { return status || limit || rate || dry_run || wait; }
};

class DeadJobsCommand {
 public:
  DeadJobsCommand(CommandContext& context, DeadJobsVerb verb, SelectionFlags flags)
      : context_(context), verb_(verb), flags_(std::move(flags)) {}

  int run() {
    check_usage();
    if (flags_.by_filter()) return change_by_filter();
    if (!flags_.ids.empty()) return change_by_ids(flags_.ids);
    int code = kExitOk;
    const auto chosen = choose_dead_jobs(context_, flags_.queue, verb_.name, code);
    if (!chosen) return code;
    flags_.all = chosen->all;
    return chosen->all ? change_by_filter() : change_by_ids(chosen->ids);
  }

 private:
  void check_usage() const {
    if (!flags_.ids.empty() && (flags_.by_filter() || flags_.any_of_filter_only())) {
      throw CLI::ValidationError("ids go alone: without --all, a filter, or flags for those");
    }
    if (flags_.all && flags_.filter.any()) {
      throw CLI::ValidationError("--all and a filter exclude each other");
    }
    if (!flags_.ids.empty() || flags_.by_filter()) return;
    if (flags_.any_of_filter_only() || !context_.terminal().can_ask()) {
      throw CLI::ValidationError("nothing is selected: name ids, a filter, or --all");
    }
  }

  int change_by_ids(std::span<const std::string> ids) {
    SelectionReport report(verb_, flags_.queue);
    for (std::size_t done = 0; done < ids.size(); done += kMaxIds) {
      const auto batch = ids.subspan(done, std::min(kMaxIds, ids.size() - done));
      const auto reply = send(ids_body(batch));
      // A refusal of every id still says what became of each.
      if (!reply || !reply->json()["skipped"].is_array()) {
        return context_.report(reply, flags_.queue);
      }
      if (context_.json()) context_.print_json(*reply);
      report.add_reply(reply->json());
    }
    return context_.json() ? report.exit_code() : report.print(context_);
  }

  int change_by_filter() {
    if (flags_.dry_run) return dry_run();
    if (verb_.name == kPurgeVerb.name && !flags_.yes && context_.terminal().can_ask()) {
      if (const auto code = ask_before_purge()) return *code;
    }
    const auto reply = send(filter_body(false));
    if (const int code = context_.report(reply, flags_.queue); code != kExitOk) return code;
    const auto operation = reply->json()["operation"];
    if (text_of(operation["state"]) == "running") return follow(*reply, text_of(operation["id"]));
    if (context_.json()) context_.print_json(*reply);
    SelectionReport report(verb_, flags_.queue);
    report.add_reply(reply->json());
    return context_.json() ? report.exit_code() : report.print(context_);
  }

  int dry_run() {
    const auto reply = send(filter_body(true));
    if (const int code = context_.report(reply, flags_.queue); code != kExitOk) return code;
    if (context_.json()) return context_.print_json(*reply);
    print_dry_run(context_, verb_, reply->json());
    return kExitOk;
  }

  // An exit code when there is nothing to go on with. Not even a job that has died since is
  // deleted without having been asked about.
  std::optional<int> ask_before_purge() {
    const auto reply = send(filter_body(true));
    if (const int code = context_.report(reply, flags_.queue); code != kExitOk) return code;
    if (reply->json()["matched"].unsigned_integer() == 0) {
      return context_.json() ? context_.print_json(*reply)
                             : SelectionReport(verb_, flags_.queue).print(context_);
    }
    const auto question = fmt::format("Purge {} of queue {} for good?", matched_text(reply->json()),
                                      escape_text(flags_.queue));
    return ask_yes_no(question) ? std::nullopt : std::optional<int>(kExitRefused);
  }

  // The server goes on with it by itself: say so, or wait for the end.
  int follow(const Reply& begun, const std::string& id) {
    if (flags_.rate && !flags_.wait) {
      if (context_.json()) return context_.print_json(begun);
      context_.print(
          fmt::format("operation {} has begun; see: reprise operation show {}\n", id, id));
      return kExitOk;
    }
    const auto ended = wait_for_operation(context_, id);
    if (const int code = context_.report(ended); code != kExitOk) {
      if (!context_.json()) {
        context_.note(fmt::format(
            "operation {} goes on without this command; see: reprise operation show {}", id, id));
      }
      return code;
    }
    SelectionReport report(verb_, flags_.queue);
    report.add_operation(ended->json());
    if (!context_.json()) return report.print(context_);
    context_.print_json(*ended);
    return report.exit_code();
  }

  Result<Reply> send(std::string body) {
    return context_.client().change_dead_jobs(flags_.queue, verb_.name, std::move(body));
  }

  static std::string ids_body(std::span<const std::string> ids) {
    JsonWriter json;
    json.begin_object().key("ids").begin_array();
    for (const auto& id : ids) json.value(id);
    json.end_array().end_object();
    return json.take();
  }

  std::string filter_body(bool dry_run) const {
    JsonWriter json;
    json.begin_object().key("filter").begin_object();
    if (flags_.status) json.key("status").value(*flags_.status);
    write_filter_members(json, flags_.filter);
    json.end_object();
    if (flags_.limit) json.key("limit").value(*flags_.limit);
    if (dry_run) {
      json.key("dry_run").value(true);
    } else {
      if (flags_.rate) json.key("rate").value(*flags_.rate);
      const bool bar = context_.terminal().err_is_tty && !context_.json();
      if (bar && !flags_.rate) json.key("wait").value(kFirstWait);
    }
    json.end_object();
    return json.take();
  }

  CommandContext& context_;
  DeadJobsVerb verb_;
  SelectionFlags flags_;
};

void add_selection_flags(CLI::App& command, SelectionFlags& flags, const std::string& verb) {
  add_queue_argument(command, flags.queue);
  command.add_option("ID", flags.ids, "Ids of jobs, or prefixes; none: --all, a filter, or a list")
      ->type_name("");
  command.add_flag("--all", flags.all, "All dead jobs of the queue");
  command.add_flag("--dry-run", flags.dry_run, "Change nothing; say how many, with examples");
  command.add_option("--limit", flags.limit, "At most this many, the longest dead first")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--rate", flags.rate,
                  "At this pace (100/s, 30/m, 1000/h), by the server; do not wait for the end")
      ->type_name("RATE")
      ->check(rate_problem);
  command.add_flag("--wait", flags.wait, "With --rate: wait for the end all the same");
  if (verb == "purge")
    command.add_flag("-y,--yes", flags.yes, "Do not ask before --all or a filter");
}

void on_run(CLI::App& command, const Commands& commands, DeadJobsVerb verb,
            const std::shared_ptr<SelectionFlags>& flags) {
  add_filter_flags(command, flags->filter);
  commands.on_run(command, [flags, verb](CommandContext& context) {
    return DeadJobsCommand(context, verb, *flags).run();
  });
}

void add_retry(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<SelectionFlags>();
  CLI::App& command = add_command(
      queue,
      {.name = "retry",
       .description = "Bring dead or failed jobs back to pending, with no failures counted",
       .examples = "  reprise queue retry orders 7ZK3M9QA 1FQ0W8C5\n"
                   "  reprise queue retry orders                        choose from a list\n"
                   "  reprise queue retry orders --error timeout --dry-run\n"
                   "  reprise queue retry orders --fingerprint 3f9a0c51d2e88b17\n"
                   "  reprise queue retry orders --all --status failed  do not wait any longer\n"
                   "  reprise queue retry orders --all --rate 100/s",
       .group = kGroup});
  add_selection_flags(command, *flags, "retry");
  command.add_option("--status", flags->status, "dead, or failed: those that cool down [dead]")
      ->type_name("STATUS")
      ->check(CLI::IsMember({"dead", "failed"}));
  on_run(command, commands, kRetryVerb, flags);
}

void add_purge(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<SelectionFlags>();
  CLI::App& command = add_command(
      queue, {.name = "purge",
              .description = "Delete dead jobs for good",
              .examples = "  reprise queue purge orders 7ZK3M9QA 1FQ0W8C5\n"
                          "  reprise queue purge orders                    choose from a list\n"
                          "  reprise queue purge orders --older-than 7d --dry-run\n"
                          "  reprise queue purge orders --all --yes",
              .group = kGroup});
  add_selection_flags(command, *flags, "purge");
  on_run(command, commands, kPurgeVerb, flags);
}

}  // namespace

void add_queue_retry_commands(CLI::App& queue, const Commands& commands) {
  add_retry(queue, commands);
  add_purge(queue, commands);
}

}  // namespace reprise::cli
