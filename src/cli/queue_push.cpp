// queue push: one job from the command line, or many from a file or stdin. Of an external queue,
// which takes no jobs: have it listed now.
#include "cli/queue_push.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/job_encoder.h"
#include "cli/payload_flags.h"
#include "cli/push_fallback.h"

namespace reprise::cli {
namespace {

using client::Reply;

CLI::ValidationError nothing_to_push() {
  return CLI::ValidationError(
      "what to push? Give a PAYLOAD, --var, --payload-base64, --file or --stdin");
}

// What CLI11 cannot tell about flags that belong together.
void check_flags(const PushFlags& flags) {
  if (flags.sources() == 0) throw nothing_to_push();
  if (flags.sources() > 1) {
    throw CLI::ValidationError(
        "give only one of PAYLOAD, --var, --payload-base64, --file and --stdin");
  }
  if (!flags.vars.empty() && flags.raw) {
    throw CLI::ValidationError("--var makes a JSON object, --raw is for bytes: give only one");
  }
  if (flags.many() && flags.fields.key) {
    throw CLI::ValidationError(
        "--key is for one job: all lines would be duplicates of the first; use --envelope with a "
        "key "
        "in each line");
  }
  if (flags.envelope && !flags.many()) {
    throw CLI::ValidationError("--envelope needs --file or --stdin");
  }
}

std::string single_payload(const PushFlags& flags) {
  if (flags.payload_base64) return *flags.payload_base64;
  if (!flags.vars.empty()) {
    auto payload = payload_of_vars(flags.vars);
    if (!payload) throw CLI::ValidationError(payload.error().detail);
    return *std::move(payload);
  }
  if (flags.payload != "-") return flags.payload.value_or("");
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

// Whether it is a stored queue, which takes a payload; so are all on a server without workers.
bool takes_payloads(const Reply& refused) {
  const std::string code = refused.json()["error"]["code"].string_or("");
  return code == "queue_not_external" || code == "workers_disabled" || code == "not_found";
}

int refresh(CommandContext& context, const std::string& queue) {
  const auto reply = context.client().refresh_queue(queue);
  if (reply && takes_payloads(*reply)) throw nothing_to_push();
  if (const int code = context.report(reply, queue); code != kExitOk) return code;
  if (context.json()) return context.print_json(*reply);
  context.print(fmt::format("Refreshed external queue '{}'\n", queue));
  return kExitOk;
}

// The server is away: the job goes to the spool.
int spool_one(CommandContext& context, PushFallback& fallback, const PushedJob& job,
              const Result<Reply>& reply) {
  const std::string reason = away_reason(context.client().server(), reply);
  const KeptJobs kept = fallback.keep({&job, 1});
  if (kept.stored == 0) {
    Problem problem = kept.error ? problem_from(*kept.error) : kept.rejected.front().second;
    problem.message = fmt::format("{}; and it cannot be spooled: {}", reason, problem.message);
    context.print_problem(problem);
    return kExitRefused;
  }
  const std::string id = encode_ulid(job.id);
  if (context.json()) {
    context.print(fmt::format("{{\"spooled\":true,\"id\":\"{}\"}}\n", id));
    return kExitOk;
  }
  context.note(spooled_note({fallback.directory(), reason, "it", fallback.dropped()}));
  context.print(id + "\n");
  return kExitOk;
}

int report_one(CommandContext& context, const Reply& reply) {
  const auto results = reply.json()["results"].elements();
  const auto result = results.empty() ? JsonView() : results.front();
  const std::string status = result["status"].string_or("");
  const bool done = status == "pushed" || status == "duplicate";
  if (context.json()) {
    context.print_json(reply);
    return done ? kExitOk : kExitRefused;
  }
  if (!done) {
    context.print_problem(problem_from(result["error"]));
    return kExitRefused;
  }
  const std::string id = result["id"].string_or("");
  if (status == "duplicate") context.note("duplicate of " + id + "; nothing was stored");
  context.print(id + "\n");
  return kExitOk;
}

int push_one(CommandContext& context, const PushFlags& flags) {
  PushFallback fallback(flags.target(context.place().ns));
  const Ulid id = fallback.next_id();
  auto job = JobEncoder(flags.input(), flags.fields)
                 .encode(single_payload(flags), flags.spool ? encode_ulid(id) : "");
  if (!job) {
    const bool hint = flags.input() == JobEncoder::Input::json;
    throw CLI::ValidationError(job.error().detail +
                               (hint ? "; for bytes or plain text use --raw" : ""));
  }
  const auto reply = context.client().push(flags.queue, push_body({*job}, flags.create));
  if (flags.spool && is_away(reply)) {
    return spool_one(context, fallback, {.line = 0, .job = *std::move(job), .id = id}, reply);
  }
  if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;
  return report_one(context, *reply);
}

void add_scheduling_flags(CLI::App& command, JobFields& fields) {
  command.add_option("--fairness-key", fields.fairness_key, "Whose turn the job takes [default]")
      ->type_name("TEXT")
      ->check(utf8_problem);
  command
      .add_option("--weight", fields.weight, "How much of the turns that key gets, 1 to 1000 [1]")
      ->type_name("N");
  command
      .add_option("--throttle-key", fields.throttle_keys,
                  "The job needs a token of it to be given out; may be repeated")
      // One value for each: the next word may be the payload.
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->check(utf8_problem);
}

void add_job_flags(CLI::App& command, PushFlags& flags) {
  add_duration(command, "--delay", flags.fields.delay, "Not before this time has passed");
  command.add_option("--priority", flags.fields.priority, "Lower is sooner [1000]")->type_name("N");
  command
      .add_option("--key", flags.fields.key,
                  "Idempotency key: a second push with it stores nothing")
      ->type_name("TEXT")
      ->check(utf8_problem);
  add_headers(command, flags.fields.headers, "A header of the job; may be repeated");
  add_duration(command, "--ttl", flags.fields.ttl, "Dies when not finished by then [the queue's]");
  add_scheduling_flags(command, flags.fields);
  command.add_flag("--create", flags.create, "Make the queue with defaults if it is not there");
  command.add_flag("--spool", flags.spool,
                   "Without a server: keep it in the spool, for `reprise spool drain`");
}

void add_input_flags(CLI::App& command, PushFlags& flags) {
  command.add_option("PAYLOAD", flags.payload, "JSON, or - for all of stdin")->type_name("");
  command.add_option("--payload-base64", flags.payload_base64, "The payload's bytes in base64")
      ->type_name("TEXT");
  command
      .add_option("--var", flags.vars,
                  "A field of the payload, NAME=TEXT or NAME:=JSON; may be repeated")
      // One value for each: the next word may be the payload, and that is told as what it is.
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  command.add_option("--file", flags.file, "One job per line: NDJSON, each line a payload")
      ->type_name("FILE");
  command.add_flag("--stdin", flags.from_stdin, "The same from stdin");
  auto* raw = command.add_flag("--raw", flags.raw, "The payload (or each line) is bytes, not JSON");
  auto* envelope = command.add_flag(
      "--envelope", flags.envelope,
      "Each line is a whole job: "
      "{\"payload\":…,\"headers\":{…},\"delay\":…,\"priority\":…,\"key\":…,\"ttl\":…,"
      "\"fairness_key\":…,\"weight\":…,\"throttle_keys\":[…]}");
  envelope->excludes(raw);
  for (const char* flag : {"--delay", "--priority", "--header", "--ttl", "--fairness-key",
                           "--weight", "--throttle-key"}) {
    envelope->excludes(command.get_option(flag));
  }
}

}  // namespace

void add_queue_push_command(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<PushFlags>();
  CLI::App& command = add_command(
      queue,
      {.name = "push",
       .description = "Push one job, or many from a file or stdin; refresh an external queue",
       .examples =
           "  reprise queue push orders '{\"id\":1}'\n"
           "  reprise queue push orders '{\"id\":2}' --delay 5m --priority 10 --header tenant=a\n"
           "  reprise queue push orders '{\"id\":3}' --fairness-key acme --weight 3 --throttle-key "
           "api\n"
           "  reprise queue push orders --var customer=acme --var id:=4\n"
           "  reprise queue push orders --file jobs.ndjson\n"
           "  produce | reprise queue push orders --stdin --envelope\n"
           "  reprise queue push images --raw - < photo.jpg\n"
           "  reprise queue push orders '{\"id\":5}' --spool    (kept here when there is no "
           "server)\n"
           "  reprise queue push bugs    (an external queue: have it listed now)",
       .group = "Jobs"});
  add_queue_argument(command, flags->queue);
  add_job_flags(command, *flags);
  add_input_flags(command, *flags);
  commands.on_run(command, [flags](CommandContext& context) {
    if (flags->bare()) return refresh(context, flags->queue);
    check_flags(*flags);
    return flags->many() ? push_many(context, *flags) : push_one(context, *flags);
  });
}

}  // namespace reprise::cli
