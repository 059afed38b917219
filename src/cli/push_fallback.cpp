#include "cli/push_fallback.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "cli/escape.h"
#include "cli/event_group.h"
#include "spool/event.h"
#include "spool/outbox.h"

namespace reprise::cli {
namespace {

constexpr char kPushType[] = "reprise.push";

}  // namespace

bool is_away(const Result<client::Reply>& reply) {
  if (!reply) return reply.error().code == Errc::unreachable;
  return reply->status == 502 || reply->status == 503 || reply->status == 504;
}

std::string away_reason(const std::string& server, const Result<client::Reply>& reply) {
  if (!reply) return reply.error().detail;
  return fmt::format("{} answered HTTP {}: {}", server, reply->status,
                     problem_from(reply->json()["error"]).message);
}

std::string spooled_note(const SpooledNote& note) {
  return fmt::format(
      "spooled in {}: {}; send {} later with: reprise spool drain{}", escape_text(note.directory),
      escape_text(note.reason), note.them,
      note.dropped == 0 ? "" : fmt::format("; {} older events had to go for it", note.dropped));
}

Result<std::string> push_event(const PushTarget& target, const Ulid& id, std::string_view job) {
  JsonWriter data;
  data.reserve(job.size() + 128);
  data.begin_object();
  data.key("namespace").value(target.ns).key("queue").value(target.queue);
  data.key("create").value(target.create).key("job").raw(job);
  data.end_object();
  return make_event(id, kPushType, data.text());
}

KeptJobs keep_jobs(const PushTarget& target, std::span<const PushedJob> jobs,
                   const spool::AddEvents& add) {
  KeptJobs kept;
  std::vector<spool::NewFile> events;
  std::vector<std::size_t> places;  // of the events among the jobs
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto event = push_event(target, jobs[i].id, jobs[i].job);
    if (!event) {
      kept.rejected.emplace_back(jobs[i].line, problem_from(event.error()));
      continue;
    }
    events.push_back(
        {.name = spool::event_file_name(encode_ulid(jobs[i].id)), .content = *std::move(event)});
    places.push_back(i);
  }
  if (!events.empty()) {
    spool::Stored stored = spool::add_what_fits(add, std::move(events));
    kept.stored = stored.count;
    kept.error = std::move(stored.error);
  }
  kept.dealt_with = kept.error ? places[kept.stored] : jobs.size();
  // Those behind the first that was not stored are nobody's yet.
  std::erase_if(kept.rejected, [&](const auto& rejected) {
    return kept.error && rejected.first >= jobs[kept.dealt_with].line;
  });
  return kept;
}

KeptJobs PushFallback::keep(std::span<const PushedJob> jobs) {
  return keep_jobs(target_, jobs,
                   [this](const std::vector<spool::NewFile>& events) { return add(events); });
}

std::string PushFallback::directory() const {
  return files_ ? files_->directory().string() : std::string();
}

Result<spool::Added> PushFallback::add(const std::vector<spool::NewFile>& events) {
  if (!files_) {
    const auto directory = spool::SpoolFiles::default_directory(std::nullopt);
    if (!directory) return directory.error();
    auto files = spool::SpoolFiles::create(*directory);
    if (!files) return files.error();
    files_ = *std::move(files);
  }
  auto added = spool::Outbox(*files_).add(events);
  if (added) dropped_ += added->dropped;
  return added;
}

}  // namespace reprise::cli
