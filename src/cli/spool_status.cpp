// spool status: what is queued and dead, the quota, and who drains.
#include "cli/spool_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>

#include "base/duration.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/ulid.h"
#include "cli/exit_code.h"
#include "cli/reply_text.h"
#include "cli/spool_flags.h"
#include "cli/table.h"
#include "spool/drain_lock.h"
#include "spool/outbox.h"
#include "spool/spool_files.h"

namespace reprise::cli {
namespace {

using spool::Folder;
using spool::Listing;

struct SpoolStatus {
  std::string directory;
  std::uint64_t queued = 0;
  std::uint64_t queued_bytes = 0;
  std::string oldest;  // empty: nothing is queued
  std::optional<Timestamp> oldest_at;
  std::uint64_t dead = 0;
  std::uint64_t dead_bytes = 0;
  std::uint64_t temporaries = 0;
  std::uint64_t ignored = 0;
  std::optional<spool::Quota> quota;
  std::optional<spool::LockHolder> drainer;
};

std::string stem_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

std::uint64_t bytes_of(const Listing& listing) {
  std::uint64_t bytes = 0;
  for (const auto& file : listing.files) bytes += file.bytes;
  return bytes;
}

void read_queue(SpoolStatus& status, const Listing& queue) {
  status.queued = queue.files.size();
  status.queued_bytes = bytes_of(queue);
  status.temporaries += queue.temporaries;
  status.ignored += queue.ignored.size();
  if (queue.files.empty()) return;
  status.oldest = stem_of(queue.files.front().name);
  if (const auto ulid = decode_ulid(status.oldest)) status.oldest_at = ulid_time(*ulid);
}

// Raw bytes belong to the envelope of their name; without one they are a dead letter by themselves.
void read_dead_letters(SpoolStatus& status, const spool::SpoolFiles& files, const Listing& dead) {
  status.dead = dead.files.size();
  status.dead_bytes = bytes_of(dead);
  status.temporaries += dead.temporaries;
  status.ignored += dead.ignored.size();
  for (const auto& raw : dead.raw_files) {
    const std::string envelope = stem_of(raw) + ".json";
    if (!std::ranges::binary_search(dead.files, envelope, {}, &spool::FileEntry::name)) {
      ++status.dead;
    }
    struct stat info {};
    if (fstatat(files.folder_fd(Folder::dead_letter), raw.c_str(), &info, AT_SYMLINK_NOFOLLOW) ==
        0) {
      status.dead_bytes += static_cast<std::uint64_t>(info.st_size);
    }
  }
}

Result<SpoolStatus> read_status(const std::filesystem::path& directory) {
  std::error_code failed;
  SpoolStatus status{.directory = std::filesystem::absolute(directory, failed).string()};
  if (failed) status.directory = directory.string();
  const auto files = spool::SpoolFiles::open(directory);
  if (!files) return files.error();
  if (!*files) return status;
  const auto queue = (*files)->list(Folder::queue, spool::Sizes::yes);
  if (!queue) return queue.error();
  const auto dead = (*files)->list(Folder::dead_letter, spool::Sizes::yes);
  if (!dead) return dead.error();
  read_queue(status, *queue);
  read_dead_letters(status, **files, *dead);
  auto quota = spool::read_quota(**files);
  if (!quota) return quota.error();
  status.quota = *std::move(quota);
  auto drainer = spool::DrainLock::holder(**files);
  if (!drainer) return drainer.error();
  status.drainer = *std::move(drainer);
  return status;
}

void write_limit(JsonWriter& json, std::string_view name, std::optional<std::uint64_t> limit) {
  json.key(name);
  limit ? json.value(*limit) : json.null();
}

void write_text(JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name);
  text.empty() ? json.null() : json.value(text);
}

void write_quota(JsonWriter& json, const std::optional<spool::Quota>& quota) {
  json.key("quota");
  if (!quota) {
    json.null();
    return;
  }
  json.begin_object();
  write_limit(json, "maxEvents", quota->max_events);
  write_limit(json, "maxBytes", quota->max_bytes);
  json.key("whenFull").value(spool::when_full_name(quota->when_full));
  json.key("dropped").value(quota->dropped);
  json.end_object();
}

std::string json_of(const SpoolStatus& status) {
  JsonWriter json;
  json.begin_object();
  json.key("directory").value(status.directory);
  json.key("queued").value(status.queued).key("queuedBytes").value(status.queued_bytes);
  write_text(json, "oldest", status.oldest);
  write_text(json, "oldestAt", status.oldest_at ? format_timestamp(*status.oldest_at) : "");
  json.key("dead").value(status.dead).key("deadBytes").value(status.dead_bytes);
  json.key("temporaries").value(status.temporaries).key("ignored").value(status.ignored);
  write_quota(json, status.quota);
  json.key("drainer");
  if (status.drainer) {
    json.begin_object().key("pid");
    status.drainer->pid == 0 ? json.null() : json.value(status.drainer->pid);
    write_text(json, "since", status.drainer->since);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.take() + "\n";
}

// For people with its age.
std::string oldest_time(const SpoolStatus& status, const Terminal& terminal) {
  if (!status.oldest_at) return {};
  std::string text = format_timestamp(*status.oldest_at);
  if (!terminal.out_is_tty) return text;
  const Duration age = std::max(wall_now() - *status.oldest_at, Duration::zero());
  return fmt::format("{}  ({} ago)", text, humanize_duration(age));
}

void add_quota(Record& record, const spool::Quota& quota) {
  record.section("Quota");
  record.field("quota.maxEvents", "events",
               Cell(quota.max_events ? std::to_string(*quota.max_events) : ""));
  record.field("quota.maxBytes", "bytes",
               Cell(quota.max_bytes ? format_bytes(*quota.max_bytes) : ""));
  record.field("quota.whenFull", "when full", Cell(spool::when_full_name(quota.when_full)));
  record.field("quota.dropped", "dropped so far", Cell(std::to_string(quota.dropped)));
}

std::string text_of(const SpoolStatus& status, const Terminal& terminal) {
  Record record(terminal);
  record.section("Spool");
  record.field("directory", "directory", Cell(status.directory));
  record.field("queued", "queued", Cell(std::to_string(status.queued), Style::bold));
  record.field("queuedBytes", "queued bytes", Cell(format_bytes(status.queued_bytes)));
  record.field("oldest", "oldest", Cell(status.oldest));
  record.field("oldestAt", "oldest from", Cell(oldest_time(status, terminal)));
  record.field("dead", "dead",
               Cell(std::to_string(status.dead), status.dead > 0 ? Style::red : Style::plain));
  record.field("deadBytes", "dead bytes", Cell(format_bytes(status.dead_bytes)));
  record.field("temporaries", "temporaries", Cell(std::to_string(status.temporaries)));
  record.field("ignored", "ignored", Cell(std::to_string(status.ignored)));
  if (status.quota) {
    add_quota(record, *status.quota);
  } else {
    record.field("quota", "quota", Cell(""));
  }
  if (status.drainer) {
    record.section("Drained by");
    const auto pid = status.drainer->pid;
    record.field("drainer.pid", "process", Cell(pid == 0 ? "" : std::to_string(pid)));
    record.field("drainer.since", "since", Cell(status.drainer->since));
  } else {
    record.field("drainer", "drained by", Cell(""));
  }
  return record.text();
}

int status(const Output& output, const std::filesystem::path& directory) {
  const auto status = read_status(directory);
  if (!status) return output.fail(status.error());
  output.print(output.json() ? json_of(*status) : text_of(*status, output.terminal()));
  return kExitOk;
}

}  // namespace

void add_spool_status_command(CLI::App& spool, const Commands& commands) {
  CLI::App& command =
      add_command(spool, {.name = "status",
                          .description = "Show what is queued and dead, the quota, and who drains",
                          .examples = "  reprise spool status\n"
                                      "  reprise spool status --json | jq .queued",
                          .group = "Events"});
  on_spool_run(command, commands, status);
}

}  // namespace reprise::cli
