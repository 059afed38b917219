#include "cli/run_trial.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "base/json_problem.h"
#include "base/json_writer.h"
#include "cli/exit_code.h"
#include "cli/input_file.h"
#include "cli/interrupt.h"
#include "cli/log_follow.h"
#include "cli/project_call.h"
#include "cli/reply_text.h"
#include "cli/run_record.h"
#include "cli/run_wait.h"

namespace reprise::cli {
namespace {

bool never() { return false; }

// CLI::ValidationError unless it is JSON. Empty: none was given.
std::string item_of(const TrialFlags& flags) {
  const char* const flag = flags.item_from_stdin ? "--item-stdin" : "--item";
  if (!flags.item && !flags.item_from_stdin) return {};
  std::string text = flags.item_from_stdin ? read_text_file(flag, "-") : *flags.item;
  const auto parsed = Json::parse(text);
  if (parsed) return text;
  const auto found = find_json_problem(text);
  throw CLI::ValidationError(flag, found ? fmt::format("not valid JSON: {} at {}", found->problem,
                                                       describe_position(text, found->offset))
                                         : parsed.error().detail);
}

std::string trial_body(const std::string& pipeline, const std::string& item,
                       const std::string& root) {
  JsonWriter json;
  json.begin_object().key("pipeline").value(pipeline);
  if (!item.empty()) json.key("item").raw(item);
  if (!root.empty()) json.key("root").value(root);
  json.end_object();
  return json.take();
}

class Trial {
 public:
  Trial(CommandContext& context, std::string id)
      : context_(context),
        id_(std::move(id)),
        printer_(context, {.read =
                               [this](client::QueryParameters page, Duration wait) {
                                 return context_.client().run_log(id_, std::move(page), wait);
                               },
                           .tail = std::nullopt,
                           .follow = true}) {}

  int run() {
    if (const int code = print_output(interrupted); code != kExitOk) return code;
    auto last = wait_for_run(context_, id_, std::nullopt, interrupted);
    if (interrupted()) {
      if (const int code = cancel(); code != kExitOk) return code;
      last = wait_for_run(context_, id_, std::nullopt, never);
    }
    if (const int code = context_.report(last); code != kExitOk) return code;
    if (context_.json()) {
      context_.print_json(*last);
      return run_exit_code(last->json());
    }
    printer_.finish_line();
    const int code = run_exit_code(last->json());
    if (code != kExitOk) context_.print_problem(run_problem(last->json()));
    return code;
  }

 private:
  int print_output(const std::function<bool()>& stop) {
    return context_.json() ? kExitOk : printer_.print(stop);
  }

  int cancel() {
    const auto reply = context_.client().cancel_run(id_);
    if (!reply) return context_.fail(reply.error());
    // A refusal: it has just ended by itself.
    if (!reply->refused()) {
      printer_.finish_line();
      context_.note(fmt::format("cancelling {}; interrupt again to leave it to itself", id_));
    }
    return print_output(never);
  }

  CommandContext& context_;
  std::string id_;
  LogPrinter printer_;
};

}  // namespace

int try_pipeline(CommandContext& context, const TrialFlags& flags) {
  if (!flags.pipeline) throw CLI::RequiredError("PIPELINE");
  const std::string item = item_of(flags);
  if (!flags.detach) catch_interrupts(NextInterrupt::ends);
  const auto reply = call_in_project(context, [&](const std::string& root) {
    return context.client().start_run(trial_body(*flags.pipeline, item, root));
  });
  if (const int code = report_in_project(context, reply); code != kExitOk) return code;
  const std::string id = text_of(reply->json()["id"]);
  if (!flags.detach) return Trial(context, id).run();
  if (context.json()) return context.print_json(*reply);
  context.print(id + "\n");
  return kExitOk;
}

}  // namespace reprise::cli
