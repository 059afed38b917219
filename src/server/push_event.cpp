#include "server/push_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "server/body_reader.h"
#include "server/new_job_reader.h"

namespace reprise::server {
namespace {

class PushEventReader {
 public:
  PushEventReader(std::string_view data, const Limits& limits, const std::string& path)
      : path_(path), in_(data), job_(in_, limits, [&path](std::string_view field) {
          return fmt::format("{}.job{}{}", path, field.empty() ? "" : ".", field);
        }) {}

  Result<PushEvent> read() {
    REPRISE_TRY(in_.read_members(*this, kFields, [&] { return path_; }));
    if (event_.queue.name.empty()) return missing("queue");
    if (!has_job_) return missing("job");
    REPRISE_TRY(check_name("queue", event_.queue.name));
    REPRISE_TRY(check_name("namespace", event_.queue.ns));
    auto job = job_.take();
    if (!job) return job.error();
    event_.job = std::move(*job);
    return std::move(event_);
  }

 private:
  static const std::array<BodyField<PushEventReader>, 4> kFields;

  Status read_namespace() { return in_.read_small(path_, "namespace", event_.queue.ns); }
  Status read_queue() { return in_.read_small(path_, "queue", event_.queue.name); }
  Status read_create() { return in_.read_small(path_, "create", event_.create); }
  Status read_job() {
    has_job_ = true;
    return job_.read();
  }

  Error missing(std::string_view field) const {
    return {Errc::invalid_request, fmt::format("{}: the field '{}' is missing", path_, field)};
  }

  const std::string& path_;
  BodyReader in_;
  NewJobReader job_;
  PushEvent event_;
  bool has_job_ = false;
};

constexpr std::array<BodyField<PushEventReader>, 4> PushEventReader::kFields = {{
    {"namespace", &PushEventReader::read_namespace},
    {"queue", &PushEventReader::read_queue},
    {"create", &PushEventReader::read_create},
    {"job", &PushEventReader::read_job},
}};

}  // namespace

Result<PushEvent> parse_push_event(std::string_view data, const Limits& limits,
                                   const std::string& path) {
  return PushEventReader(data, limits, path).read();
}

void let_pass(NewJob& job, Duration elapsed) {
  constexpr Duration kLeastTtl = std::chrono::milliseconds(1);
  elapsed = std::max(elapsed, Duration::zero());
  job.delay = std::max(job.delay - elapsed, Duration::zero());
  if (job.ttl) job.ttl = std::max(*job.ttl - elapsed, kLeastTtl);
}

}  // namespace reprise::server
