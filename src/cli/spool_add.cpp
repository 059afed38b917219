// spool add: one event from the command line or stdin, or one of each line.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/random.h"
#include "base/text.h"
#include "base/ulid.h"
#include "cli/event_group.h"
#include "cli/exit_code.h"
#include "cli/json_input.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/rejected_lines.h"
#include "cli/spool_commands.h"
#include "cli/spool_flags.h"
#include "model/limits.h"
#include "spool/event.h"
#include "spool/outbox.h"
#include "spool/what_fits.h"

namespace reprise::cli {
namespace {

struct AddFlags {
  std::string type;
  std::optional<std::string> data;
  bool data_stdin = false;
  bool ndjson_stdin = false;
  QuotaFlags quota;
};

std::string type_problem(const std::string& type) {
  const std::string problem = event_type_problem(type);
  return problem.empty() ? problem : "the type " + problem;
}

// Stores events group by group, and tells the ids of those that are durable.
class EventAdder {
 public:
  EventAdder(const Output& output, const std::string& type, spool::AddEvents add)
      : output_(output), type_(type), add_(std::move(add)) {}

  // An error is about this event alone. `line` is for messages.
  Status take(std::string_view data, std::uint64_t line = 0) {
    const Ulid id = ids_.next(clock_.now());
    auto json = make_event(id, type_, data);
    if (!json) return json.error();
    waiting_bytes_ += json->size();
    ids_waiting_.push_back(encode_ulid(id));
    lines_.push_back(line);
    events_.push_back(
        {.name = spool::event_file_name(ids_waiting_.back()), .content = *std::move(json)});
    return ok();
  }

  bool group_is_full() const {
    return events_.size() >= kGroupEvents || waiting_bytes_ >= kGroupBytes;
  }

  // False: the spool takes no more; stopped_by() says why.
  bool flush() {
    if (events_.empty()) return true;
    spool::Stored stored = spool::add_what_fits(add_, std::exchange(events_, {}));
    dropped_ += stored.added.dropped;
    tell(stored.count);
    stopped_by_ = std::move(stored.error);
    if (stopped_by_) first_lost_line_ = lines_[stored.count];
    ids_waiting_.clear();
    lines_.clear();
    waiting_bytes_ = 0;
    return !stopped_by_;
  }

  // What a quota that drops the oldest has cost.
  void note_dropped() const {
    if (dropped_ == 0 || output_.json()) return;
    output_.note(fmt::format("dropped {} older {} to make room", dropped_,
                             dropped_ == 1 ? "event" : "events"));
  }

  const std::optional<Error>& stopped_by() const { return stopped_by_; }
  std::uint64_t first_lost_line() const { return first_lost_line_; }

  std::string json(std::uint64_t rejected) const {
    JsonWriter json;
    json.begin_object().key("ids").begin_array();
    for (const auto& id : told_) json.value(id);
    json.end_array();
    json.key("rejected").value(rejected).key("dropped").value(dropped_);
    json.end_object();
    return json.take() + "\n";
  }

 private:
  void tell(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      if (output_.json()) {
        told_.push_back(std::move(ids_waiting_[i]));
      } else {
        text += ids_waiting_[i] + "\n";
      }
    }
    output_.print(text);
    // Whoever reads the pipe may rely on them now.
    std::fflush(stdout);
  }

  const Output& output_;
  const std::string& type_;
  spool::AddEvents add_;
  SteadyWallClock clock_;
  SystemRandom random_;
  UlidSource ids_{random_};
  std::vector<spool::NewFile> events_;
  std::vector<std::string> ids_waiting_;
  std::vector<std::uint64_t> lines_;
  std::size_t waiting_bytes_ = 0;
  std::vector<std::string> told_;  // only for --json
  std::uint64_t dropped_ = 0;
  std::optional<Error> stopped_by_;
  std::uint64_t first_lost_line_ = 0;
};

std::string cannot_read_stdin() {
  return fmt::format("cannot read stdin: {}", std::strerror(errno));
}

// All of stdin; what is beyond an event is only counted.
std::string read_stdin() {
  std::string text;
  std::size_t size = 0;
  std::array<char, 64 << 10> part;
  while (true) {
    const ssize_t got = read(STDIN_FILENO, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CLI::ValidationError(cannot_read_stdin());
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size <= spool::kMaxEventBytes) text.append(part.data(), static_cast<std::size_t>(got));
  }
  if (size > spool::kMaxEventBytes) {
    throw CLI::ValidationError(fmt::format("the data has {} bytes; an event may have at most {}",
                                           size, spool::kMaxEventBytes));
  }
  return text;
}

std::string given_data(const AddFlags& flags) {
  const std::string text = flags.data_stdin ? read_stdin() : flags.data.value_or("null");
  std::string data(trimmed(text));
  if (const Status checked = check_json_input("the data", data); !checked) {
    throw CLI::ValidationError(checked.error().detail);
  }
  return data;
}

spool::AddEvents adding_to(spool::Outbox& outbox) {
  return [&outbox](const std::vector<spool::NewFile>& events) { return outbox.add(events); };
}

int add_one(const Output& output, const std::filesystem::path& directory, const AddFlags& flags) {
  const std::string data = given_data(flags);
  // What is no event must not leave a directory or a quota behind.
  if (const auto fits = make_event({}, flags.type, data); !fits) {
    throw CLI::ValidationError(fits.error().detail);
  }
  auto files = prepare_spool(directory, flags.quota);
  if (!files) return output.fail(files.error());
  spool::Outbox outbox(*files);
  EventAdder adder(output, flags.type, adding_to(outbox));
  if (const auto taken = adder.take(data); !taken) return output.fail(taken.error());
  if (!adder.flush()) return output.fail(*adder.stopped_by());
  adder.note_dropped();
  if (output.json()) output.print(adder.json(0));
  return kExitOk;
}

Problem too_long_line(std::uint64_t bytes) {
  return problem_from(Error{Errc::payload_too_large,
                            fmt::format("the line has {} bytes; an event may have at most {}",
                                        bytes, spool::kMaxEventBytes)});
}

// Until the end of the input or of the spool. The error is that of reading.
Status add_lines(LineReader& lines, EventAdder& adder, RejectedLines& rejected,
                 ProgressBar& progress) {
  using Event = LineReader::Event;
  std::uint64_t bytes_before = 0;
  while (true) {
    const Event event = lines.next();
    if (event == Event::failed) {
      Error error{Errc::io, cannot_read_stdin()};
      adder.flush();
      return error;
    }
    if (event == Event::end || event == Event::idle) {
      if (!adder.flush() || event == Event::end) return ok();
      continue;
    }
    const std::uint64_t line_bytes = lines.bytes_taken() - bytes_before;
    bytes_before = lines.bytes_taken();
    if (event == Event::too_long) {
      rejected.add(lines.number(), too_long_line(line_bytes));
    } else if (const auto data = trimmed(lines.text()); !data.empty()) {
      const Status checked = check_json_input("the data", data);
      const Status taken = checked ? adder.take(data, lines.number()) : checked;
      if (!taken) rejected.add(lines.number(), problem_from(taken.error()));
      if (adder.group_is_full() && !adder.flush()) return ok();
    }
    progress.update({.done = 0, .total = 0, .count = lines.number(), .unit = "lines"});
  }
}

int add_many(const Output& output, const std::filesystem::path& directory, const AddFlags& flags) {
  auto files = prepare_spool(directory, flags.quota);
  if (!files) return output.fail(files.error());
  spool::Outbox outbox(*files);
  EventAdder adder(output, flags.type, adding_to(outbox));
  // On one terminal the ids and a bar would be in each other's way.
  const Terminal& terminal = output.terminal();
  ProgressBar progress(terminal.err_is_tty && !terminal.out_is_tty && !output.json());
  RejectedLines rejected(output, progress);
  LineReader lines(STDIN_FILENO, spool::kMaxEventBytes);
  const Status read_all = add_lines(lines, adder, rejected, progress);

  progress.clear();
  rejected.end();
  adder.note_dropped();
  if (output.json()) output.print(adder.json(rejected.count()));
  if (adder.stopped_by()) {
    if (!output.json()) {
      output.note(fmt::format("reprise: stopped after line {}; go on with: tail -n +{}",
                              adder.first_lost_line() - 1, adder.first_lost_line()));
    }
    return output.fail(*adder.stopped_by());
  }
  if (!read_all) throw CLI::ValidationError(read_all.error().detail);
  return rejected.count() == 0 ? kExitOk : kExitRefused;
}

}  // namespace

void add_spool_add_command(CLI::App& spool, const Commands& commands) {
  auto flags = std::make_shared<AddFlags>();
  CLI::App& command = add_command(
      spool, {.name = "add",
              .description = "Store an event, or one of each line, durably; needs no server",
              .examples = "  reprise spool add order.created --data '{\"id\": 7}'\n"
                          "  reprise spool add order.created --data-stdin < order.json\n"
                          "  produce | reprise spool add reading --ndjson-stdin\n"
                          "  reprise spool add reading --data 21.5 --max-events 100000 --when-full "
                          "drop-oldest",
              .group = "Events"});
  command.add_option("TYPE", flags->type, "The type of the events: order.created")
      ->required()
      ->type_name("")
      ->check(type_problem);
  auto* const data =
      command.add_option("--data", flags->data, "The event's data [null]")->type_name("JSON");
  auto* const data_stdin = command.add_flag("--data-stdin", flags->data_stdin,
                                            "The data is all of stdin, one JSON value");
  auto* const ndjson_stdin = command.add_flag("--ndjson-stdin", flags->ndjson_stdin,
                                              "One event for each line of stdin, its data");
  data->excludes(data_stdin)->excludes(ndjson_stdin);
  data_stdin->excludes(ndjson_stdin);
  add_quota_flags(command, flags->quota);
  on_spool_run(command, commands, [flags](const Output& output, const auto& directory) {
    return flags->ndjson_stdin ? add_many(output, directory, *flags)
                               : add_one(output, directory, *flags);
  });
}

}  // namespace reprise::cli
