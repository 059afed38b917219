// queue push: one job from the command line, or many from a file or stdin.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/json_writer.h"
#include "cli/bulk_push.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/job_encoder.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

using client::Reply;
using Input = JobEncoder::Input;

// A line beyond this cannot be a job: the API refuses such a request as a whole.
constexpr std::size_t kMaxLineBytes = 24 << 20;
constexpr std::uint64_t kRejectedShown = 20;
// How often, and how far apart, a busy server is asked again.
constexpr int kOverloadedTries = 10;
constexpr auto kOverloadedPause = std::chrono::seconds(1);

struct PushFlags {
  std::string queue;
  std::optional<std::string> payload;
  std::optional<std::string> payload_base64;
  std::optional<std::string> file;
  bool from_stdin = false;
  bool envelope = false;
  bool raw = false;
  bool create = false;
  JobFields fields;

  bool many() const { return file || from_stdin; }
};

Input input_of(const PushFlags& flags) {
  if (flags.payload_base64) return Input::base64;
  if (flags.envelope) return Input::envelope;
  return flags.raw ? Input::bytes : Input::json;
}

// What CLI11 cannot tell about flags that belong together.
void check_flags(const PushFlags& flags) {
  const int sources = int(flags.payload.has_value()) + int(flags.payload_base64.has_value()) +
                      int(flags.file.has_value()) + int(flags.from_stdin);
  if (sources == 0) {
    throw CLI::ValidationError("what to push? Give a PAYLOAD, --payload-base64, --file or --stdin");
  }
  if (sources > 1) {
    throw CLI::ValidationError("give only one of PAYLOAD, --payload-base64, --file and --stdin");
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
  if (flags.payload != "-") return flags.payload.value_or("");
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

int push_one(CommandContext& context, const PushFlags& flags) {
  const auto job = JobEncoder(input_of(flags), flags.fields).encode(single_payload(flags));
  if (!job) {
    const bool hint = input_of(flags) == Input::json;
    throw CLI::ValidationError(job.error().detail +
                               (hint ? "; for bytes or plain text use --raw" : ""));
  }
  const auto reply = context.client().push(flags.queue, push_body({*job}, flags.create));
  if (const int code = context.report(reply, flags.queue); code != kExitOk) return code;
  const auto results = reply->json()["results"].elements();
  const auto result = results.empty() ? client::JsonView() : results.front();
  const std::string status = result["status"].string_or("");
  const bool done = status == "pushed" || status == "duplicate";
  if (context.json()) {
    context.print_json(*reply);
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

// The input of many jobs, closed at the end when it is a file.
class InputFile {
 public:
  explicit InputFile(const PushFlags& flags) : name_(flags.file.value_or("-")) {
    if (name_ != "-") fd_ = open(name_.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd_ >= 0 && fstat(fd_, &info) == 0 && S_ISREG(info.st_mode)) {
      size_ = static_cast<std::uint64_t>(info.st_size);
    }
  }
  ~InputFile() {
    if (fd_ > STDIN_FILENO) close(fd_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int fd() const { return fd_; }
  std::uint64_t size() const { return size_; }  // 0: not known
  std::string cannot_read() const {
    const char* const reason = std::strerror(errno);
    return fmt::format("cannot read {}: {}", name_ == "-" ? "stdin" : name_, reason);
  }

 private:
  std::string name_;
  int fd_ = STDIN_FILENO;
  std::uint64_t size_ = 0;
};

// Prints the first errors and counts the rest.
class RejectedLines {
 public:
  RejectedLines(const CommandContext& context, ProgressBar& progress)
      : context_(context), progress_(progress) {}

  void add(std::uint64_t line, const Problem& problem) {
    if (++count_ > kRejectedShown) return;
    progress_.clear();
    if (context_.json()) {
      context_.note(fmt::format(R"({{"line":{},"error":{}}})", line, to_json(problem)));
    } else {
      context_.print_problem(problem, fmt::format("line {}", line));
    }
  }
  void end() const {
    if (count_ > kRejectedShown && !context_.json()) {
      context_.note(fmt::format("reprise: and {} more lines", count_ - kRejectedShown));
    }
  }

 private:
  const CommandContext& context_;
  ProgressBar& progress_;
  std::uint64_t count_ = 0;
};

Result<Reply> send_patiently(CommandContext& context, const PushFlags& flags,
                             const std::string& body) {
  for (int tries = 1;; ++tries) {
    auto reply = context.client().push(flags.queue, body);
    const bool busy = reply && reply->json()["error"]["code"].string_or("") == "overloaded";
    if (!busy || tries == kOverloadedTries) return reply;
    std::this_thread::sleep_for(kOverloadedPause);
  }
}

// Reads, encodes and sends until the end of the input or of the server. False: reading failed.
bool push_lines(LineReader& lines, const JobEncoder& encoder, BulkPush& push,
                std::uint64_t input_bytes, ProgressBar& progress) {
  using Event = LineReader::Event;
  while (true) {
    const Event event = lines.next();
    bool going = true;
    if (event == Event::failed) return false;
    if (event == Event::end || event == Event::idle) {
      going = push.flush() && event == Event::idle;
    } else if (event == Event::too_long) {
      push.reject(lines.number(),
                  {.code = "body_too_large", .message = "the line is beyond 24 MiB"});
    } else if (lines.text().find_first_not_of(" \t") != std::string_view::npos) {
      auto job = encoder.encode(lines.text());
      if (job) {
        going = push.add(lines.number(), *std::move(job));
      } else {
        push.reject(lines.number(), problem_from(job.error()));
      }
    }
    if (!going) return true;
    progress.update({.done = lines.bytes_taken(),
                     .total = input_bytes,
                     .count = lines.number(),
                     .unit = "lines"});
  }
}

void print_counts(const CommandContext& context, const BulkPush::Counts& counts) {
  if (!context.json()) {
    context.print(fmt::format("pushed {}, duplicate {}, rejected {}\n", counts.pushed,
                              counts.duplicates, counts.rejected));
    return;
  }
  JsonWriter json;
  json.begin_object();
  json.key("pushed").value(counts.pushed).key("duplicates").value(counts.duplicates);
  json.key("rejected").value(counts.rejected).key("lines").value(counts.lines);
  json.end_object();
  context.print(json.take() + "\n");
}

int report_stop(CommandContext& context, const BulkPush::Stop& stop, const std::string& queue) {
  if (!context.json()) {
    // Without an answer nobody knows whether the batch arrived.
    const auto doubt = stop.reply ? std::string()
                                  : fmt::format(" lines {} to {} may or may not be stored;",
                                                stop.first_line, stop.last_line);
    context.note(fmt::format("reprise: stopped after line {};{} go on with: tail -n +{}",
                             stop.first_line - 1, doubt, stop.first_line));
  }
  return context.report(stop.reply, queue);
}

int push_many(CommandContext& context, const PushFlags& flags) {
  const InputFile input(flags);
  if (input.fd() < 0) throw CLI::ValidationError(input.cannot_read());

  ProgressBar progress(context.terminal().err_is_tty && !context.json());
  RejectedLines rejected(context, progress);
  BulkPush push([&](const std::string& body) { return send_patiently(context, flags, body); },
                [&](std::uint64_t line, const Problem& problem) { rejected.add(line, problem); },
                flags.create);
  LineReader lines(input.fd(), kMaxLineBytes);
  const JobEncoder encoder(input_of(flags), flags.fields);
  const bool read_all = push_lines(lines, encoder, push, input.size(), progress);
  const std::string read_problem = read_all ? "" : input.cannot_read();
  if (!read_all) push.flush();

  progress.clear();
  rejected.end();
  print_counts(context, push.counts());
  if (push.stopped()) return report_stop(context, *push.stopped(), flags.queue);
  if (!read_all) throw CLI::ValidationError(read_problem);
  return push.counts().rejected == 0 ? kExitOk : kExitRefused;
}

void add_job_flags(CLI::App& command, PushFlags& flags) {
  add_duration(command, "--delay", flags.fields.delay, "Not before this time has passed");
  command.add_option("--priority", flags.fields.priority, "Lower is sooner [1000]")->type_name("N");
  command
      .add_option("--key", flags.fields.key,
                  "Idempotency key: a second push with it stores nothing")
      ->type_name("TEXT");
  add_headers(command, flags.fields.headers, "A header of the job; may be repeated");
  add_duration(command, "--ttl", flags.fields.ttl, "Dies when not finished by then [the queue's]");
  command.add_flag("--create", flags.create, "Make the queue with defaults if it is not there");
}

void add_input_flags(CLI::App& command, PushFlags& flags) {
  command.add_option("PAYLOAD", flags.payload, "JSON, or - for all of stdin")->type_name("");
  command.add_option("--payload-base64", flags.payload_base64, "The payload's bytes in base64")
      ->type_name("TEXT");
  command.add_option("--file", flags.file, "One job per line: NDJSON, each line a payload")
      ->type_name("FILE");
  command.add_flag("--stdin", flags.from_stdin, "The same from stdin");
  auto* raw = command.add_flag("--raw", flags.raw, "The payload (or each line) is bytes, not JSON");
  auto* envelope = command.add_flag(
      "--envelope", flags.envelope,
      "Each line is a whole job: "
      "{\"payload\":…,\"headers\":{…},\"delay\":…,\"priority\":…,\"key\":…,\"ttl\":…}");
  envelope->excludes(raw);
  for (const char* flag : {"--delay", "--priority", "--header", "--ttl"}) {
    envelope->excludes(command.get_option(flag));
  }
}

}  // namespace

void add_queue_push_command(CLI::App& queue, const Commands& commands) {
  auto flags = std::make_shared<PushFlags>();
  CLI::App& command = add_command(
      queue,
      {.name = "push",
       .description = "Push one job, or many from a file or stdin",
       .examples =
           "  reprise queue push orders '{\"id\":1}'\n"
           "  reprise queue push orders '{\"id\":2}' --delay 5m --priority 10 --header tenant=a\n"
           "  reprise queue push orders --file jobs.ndjson\n"
           "  produce | reprise queue push orders --stdin --envelope\n"
           "  reprise queue push images --raw - < photo.jpg",
       .group = "Jobs"});
  add_queue_argument(command, flags->queue);
  add_job_flags(command, *flags);
  add_input_flags(command, *flags);
  commands.on_run(command, [flags](CommandContext& context) {
    check_flags(*flags);
    return flags->many() ? push_many(context, *flags) : push_one(context, *flags);
  });
}

}  // namespace reprise::cli
