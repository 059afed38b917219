// queue push --file, --stdin: one job for each line.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <thread>

#include "base/json_writer.h"
#include "cli/bulk_push.h"
#include "cli/exit_code.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/queue_push.h"
#include "cli/rejected_lines.h"

namespace reprise::cli {
namespace {

using client::Reply;

// A line beyond this cannot be a job: the API refuses such a request as a whole.
constexpr std::size_t kMaxLineBytes = 24 << 20;
// How often, and how far apart, a busy server is asked again.
constexpr int kOverloadedTries = 10;
constexpr auto kOverloadedPause = std::chrono::seconds(1);

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

Result<Reply> send_patiently(CommandContext& context, const PushFlags& flags,
                             const std::string& body) {
  for (int tries = 1;; ++tries) {
    auto reply = context.client().push(flags.queue, body);
    const bool busy = reply && reply->json()["error"]["code"].string_or("") == "overloaded";
    if (!busy || tries == kOverloadedTries) return reply;
    std::this_thread::sleep_for(kOverloadedPause);
  }
}

// Gives each job its place in the input, and with --spool an id and a key.
class LineEncoder {
 public:
  LineEncoder(const PushFlags& flags, PushFallback& fallback)
      : encoder_(flags.input(), flags.fields), spool_(flags.spool), fallback_(fallback) {}

  Result<PushedJob> encode(std::uint64_t line, std::string_view text) {
    PushedJob job{.line = line, .job = {}, .id = {}};
    if (spool_) job.id = fallback_.next_id();
    auto encoded = encoder_.encode(text, spool_ ? encode_ulid(job.id) : "");
    if (!encoded) return encoded.error();
    job.job = *std::move(encoded);
    return job;
  }

 private:
  JobEncoder encoder_;
  bool spool_;
  PushFallback& fallback_;
};

// Reads, encodes and sends until the end of the input or of the server. False: reading failed.
bool push_lines(LineReader& lines, LineEncoder& encoder, BulkPush& push, std::uint64_t input_bytes,
                ProgressBar& progress) {
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
      auto job = encoder.encode(lines.number(), lines.text());
      if (job) {
        going = push.add(*std::move(job));
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

// What was spooled is a count only where something could be.
void print_counts(const CommandContext& context, const BulkPush::Counts& counts, bool spool) {
  if (!context.json()) {
    context.print(fmt::format("pushed {}, duplicate {}, rejected {}{}\n", counts.pushed,
                              counts.duplicates, counts.rejected,
                              spool ? fmt::format(", spooled {}", counts.spooled) : ""));
    return;
  }
  JsonWriter json;
  json.begin_object();
  json.key("pushed").value(counts.pushed).key("duplicates").value(counts.duplicates);
  json.key("rejected").value(counts.rejected).key("lines").value(counts.lines);
  if (spool) json.key("spooled").value(counts.spooled);
  json.end_object();
  context.print(json.take() + "\n");
}

int report_stop(CommandContext& context, const BulkPush::Stop& stop, const std::string& queue) {
  if (!context.json()) {
    // Without an answer nobody knows whether the batch arrived.
    const bool doubtful = !stop.reply && stop.last_line >= stop.first_line;
    const auto doubt = doubtful ? fmt::format(" lines {} to {} may or may not be stored;",
                                              stop.first_line, stop.last_line)
                                : std::string();
    context.note(fmt::format("reprise: stopped after line {};{} go on with: tail -n +{}",
                             stop.first_line - 1, doubt, stop.first_line));
  }
  if (!stop.spool_error) return context.report(stop.reply, queue);
  Problem problem = problem_from(*stop.spool_error);
  problem.message = fmt::format("{}; and from line {} on jobs cannot be spooled: {}",
                                away_reason(context.client().server(), stop.reply), stop.first_line,
                                problem.message);
  context.print_problem(problem);
  return kExitRefused;
}

}  // namespace

int push_many(CommandContext& context, const PushFlags& flags) {
  const InputFile input(flags);
  if (input.fd() < 0) throw CLI::ValidationError(input.cannot_read());

  ProgressBar progress(context.terminal().err_is_tty && !context.json());
  RejectedLines rejected(context, progress);
  BulkPush push([&](const std::string& body) { return send_patiently(context, flags, body); },
                [&](std::uint64_t line, const Problem& problem) { rejected.add(line, problem); },
                flags.create);
  PushFallback fallback(flags.target(context.place().ns));
  if (flags.spool) {
    push.set_fallback([&](std::span<const PushedJob> jobs) { return fallback.keep(jobs); });
  }
  LineReader lines(input.fd(), kMaxLineBytes);
  LineEncoder encoder(flags, fallback);
  const bool read_all = push_lines(lines, encoder, push, input.size(), progress);
  const std::string read_problem = read_all ? "" : input.cannot_read();
  if (!read_all) push.flush();

  progress.clear();
  rejected.end();
  print_counts(context, push.counts(), flags.spool);
  if (push.counts().spooled > 0 && !context.json()) {
    const std::string reason = away_reason(context.client().server(), *push.away());
    context.note(spooled_note({fallback.directory(), reason, "them", fallback.dropped()}));
  }
  if (push.stopped()) return report_stop(context, *push.stopped(), flags.queue);
  if (!read_all) throw CLI::ValidationError(read_problem);
  return push.counts().rejected == 0 ? kExitOk : kExitRefused;
}

}  // namespace reprise::cli
