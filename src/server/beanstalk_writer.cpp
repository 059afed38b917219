#include "server/beanstalk_writer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <iterator>

#include "reprise_version.h"

namespace reprise::server {
namespace {

constexpr std::string_view kNotFound = "NOT_FOUND\r\n";
constexpr std::string_view kBadFormat = "BAD_FORMAT\r\n";
constexpr std::string_view kOutOfMemory = "OUT_OF_MEMORY\r\n";
constexpr std::string_view kLineEnd = "\r\n";

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// "WORD <id> <bytes>", the body, and its end.
void append_body(std::string& out, std::string_view word, Seq seq, std::string_view body) {
  out += word;
  append_number(out, seq);
  out += ' ';
  append_number(out, body.size());
  out += kLineEnd;
  out += body;
  out += kLineEnd;
}

void append_yaml(std::string& out, std::string_view yaml) {
  out += "OK ";
  append_number(out, yaml.size());
  out += kLineEnd;
  out += yaml;
  out += kLineEnd;
}

// "name: value" lines.
class Fields {
 public:
  template <class Value>
  Fields& add(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(text_), "{}: {}\n", name, value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "---\n";
};

std::uint64_t whole_seconds(Duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
}

std::uint64_t count_of(const QueueStats& stats, JobStatus status) {
  return stats.by_status[static_cast<std::size_t>(status)];
}

struct JobCounts {
  std::uint64_t urgent = 0;
  std::uint64_t ready = 0;
  std::uint64_t reserved = 0;
  std::uint64_t delayed = 0;
  std::uint64_t buried = 0;

  void add(const session::QueueFacts& queue) {
    urgent += queue.urgent;
    ready += count_of(queue.stats, JobStatus::pending);
    reserved += count_of(queue.stats, JobStatus::active);
    delayed += count_of(queue.stats, JobStatus::scheduled);
    delayed += count_of(queue.stats, JobStatus::failed);
    buried += count_of(queue.stats, JobStatus::dead);
  }

  void write(Fields& out) const {
    out.add("current-jobs-urgent", urgent)
        .add("current-jobs-ready", ready)
        .add("current-jobs-reserved", reserved)
        .add("current-jobs-delayed", delayed)
        .add("current-jobs-buried", buried);
  }
};

bool is_there(const session::Found& reply) {
  return reply.job && reply.job->record && reply.job->status != JobStatus::completed;
}

std::string_view state_name(JobStatus status) {
  switch (status) {
    case JobStatus::pending:
      return "ready";
    case JobStatus::active:
      return "reserved";
    case JobStatus::scheduled:
    case JobStatus::failed:
      return "delayed";
    case JobStatus::dead:
    case JobStatus::completed:
      return "buried";
  }
  return "invalid";
}

std::int64_t ended_so(const JobState& state, AttemptOutcome outcome) {
  return std::ranges::count(state.history, outcome, &Attempt::outcome);
}

// How long it still is what it is.
std::uint64_t time_left(const session::JobFound& job) {
  if (!job.state) return 0;
  if (job.status == JobStatus::active) return whole_seconds(job.state->lease_deadline - job.now);
  if (state_name(job.status) != "delayed") return 0;
  return whole_seconds(job.state->due - job.now);
}

std::string_view settled_line(session::How how) {
  switch (how) {
    case session::How::deleted:
      return "DELETED\r\n";
    case session::How::released:
      return "RELEASED\r\n";
    case session::How::buried:
      return "BURIED\r\n";
    case session::How::touched:
      return "TOUCHED\r\n";
    case session::How::kicked:
      return "KICKED\r\n";
    case session::How::paused:
      return "PAUSED\r\n";
  }
  return kBeanstalkInternalError;
}

std::string_view not_reserved_line(session::Why why) {
  switch (why) {
    case session::Why::timed_out:
      return "TIMED_OUT\r\n";
    case session::Why::deadline_soon:
      return "DEADLINE_SOON\r\n";
    case session::Why::not_found:
      return kNotFound;
    case session::Why::no_room:
      return kOutOfMemory;
  }
  return kBeanstalkInternalError;
}

// In the order of beanstalkd, which has no counters for the others.
constexpr std::array kCountedVerbs = {
    BeanstalkVerb::put,
    BeanstalkVerb::peek,
    BeanstalkVerb::peek_ready,
    BeanstalkVerb::peek_delayed,
    BeanstalkVerb::peek_buried,
    BeanstalkVerb::reserve,
    BeanstalkVerb::reserve_with_timeout,
    BeanstalkVerb::remove,
    BeanstalkVerb::release,
    BeanstalkVerb::use,
    BeanstalkVerb::watch,
    BeanstalkVerb::ignore,
    BeanstalkVerb::bury,
    BeanstalkVerb::kick,
    BeanstalkVerb::touch,
    BeanstalkVerb::stats,
    BeanstalkVerb::stats_job,
    BeanstalkVerb::stats_tube,
    BeanstalkVerb::list_tubes,
    BeanstalkVerb::list_tube_used,
    BeanstalkVerb::list_tubes_watched,
    BeanstalkVerb::pause_tube,
};

std::string seconds_text(const timeval& time) {
  return fmt::format("{}.{:06}", time.tv_sec, time.tv_usec);
}

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

void write_process(Fields& out, const BeanstalkCensus& census) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  out.add("pid", getpid())
      .add("version", quoted(kVersion))
      .add("rusage-utime", seconds_text(usage.ru_utime))
      .add("rusage-stime", seconds_text(usage.ru_stime))
      .add("uptime", whole_seconds(census.uptime));
}

void write_system(Fields& out, const BeanstalkCensus& census) {
  utsname system{};
  uname(&system);
  // Quoted: the version of a kernel begins with '#', which begins a comment in YAML.
  out.add("id", census.id)
      .add("hostname", quoted(system.nodename))
      .add("os", quoted(system.version))
      .add("platform", quoted(system.machine));
}

std::uint64_t since(std::uint64_t total, std::uint64_t earlier) {
  return total > earlier ? total - earlier : 0;
}

}  // namespace

std::string_view beanstalk_refusal_line(BeanstalkRefusal refusal) {
  switch (refusal) {
    case BeanstalkRefusal::bad_format:
      return kBadFormat;
    case BeanstalkRefusal::unknown_command:
      return "UNKNOWN_COMMAND\r\n";
    case BeanstalkRefusal::expected_crlf:
      return "EXPECTED_CRLF\r\n";
    case BeanstalkRefusal::job_too_big:
      return "JOB_TOO_BIG\r\n";
    case BeanstalkRefusal::out_of_memory:
      return kOutOfMemory;
    case BeanstalkRefusal::none:
      break;
  }
  return kBeanstalkInternalError;
}

std::string_view beanstalk_error_line(Errc code, bool of_put) {
  switch (code) {
    case Errc::job_not_found:
    case Errc::queue_not_found:
    case Errc::lease_lost:
    case Errc::wrong_status:
    case Errc::invalid_lease_token:
      return kNotFound;
    case Errc::payload_too_large:
      return "JOB_TOO_BIG\r\n";
    case Errc::invalid_request:
    case Errc::invalid_field:
    case Errc::invalid_name:
    case Errc::missing_var:
    case Errc::missing_field:
    case Errc::hook_rejected:
    case Errc::external_queue:
    case Errc::error_too_long:
      return kBadFormat;
    case Errc::queue_full:
    case Errc::queue_bytes_full:
    case Errc::disk_full:
    case Errc::batch_too_many_jobs:
    case Errc::batch_too_large:
    case Errc::too_many_waiting:
    case Errc::overloaded:
      return kOutOfMemory;
    case Errc::shutting_down:
      return of_put ? kBeanstalkDraining : kBeanstalkInternalError;
    default:
      return kBeanstalkInternalError;
  }
}

void append_using(std::string& out, std::string_view tube) {
  out += "USING ";
  out += tube;
  out += kLineEnd;
}

void append_watching(std::string& out, std::size_t count) {
  out += "WATCHING ";
  append_number(out, count);
  out += kLineEnd;
}

void append_beanstalk(std::string& out, const session::PutDone& reply) {
  for (const Result<PushedJob>& result : reply.results) {
    if (!result) {
      out += beanstalk_error_line(result.error().code, true);
      continue;
    }
    out += "INSERTED ";
    append_number(out, result->seq);
    out += kLineEnd;
  }
}

void append_beanstalk(std::string& out, const session::Reserved& reply) {
  for (const ClaimedJob& job : reply.jobs) {
    append_body(out, "RESERVED ", job.token.job.seq, job.record->payload);
  }
}

void append_beanstalk(std::string& out, const session::NotReserved& reply) {
  for (std::uint32_t i = 0; i < reply.count; ++i) out += not_reserved_line(reply.why);
}

void append_beanstalk(std::string& out, const session::Settled& reply) {
  for (const Status& item : reply.items) {
    out += item ? settled_line(reply.how) : beanstalk_error_line(item.error().code, false);
  }
}

void append_beanstalk(std::string& out, const session::FailDone& reply) {
  if (!reply.result) {
    out += beanstalk_error_line(reply.result.error().code, false);
  } else if (reply.result->status == JobStatus::dead) {
    out += "DEAD\r\n";
  } else {
    const auto left = std::chrono::ceil<std::chrono::seconds>(reply.result->retry_at - reply.now);
    out += "RETRYING ";
    append_number(out, static_cast<std::uint64_t>(std::max<std::int64_t>(left.count(), 0)));
    out += kLineEnd;
  }
}

void append_beanstalk(std::string& out, const session::Kicked& reply) {
  out += "KICKED ";
  append_number(out, reply.count);
  out += kLineEnd;
}

void append_found(std::string& out, const session::Found& reply) {
  if (!is_there(reply)) {
    out += kNotFound;
  } else {
    append_body(out, "FOUND ", reply.job->seq, reply.job->record->payload);
  }
}

void append_tubes(std::string& out, std::span<const std::string> tubes) {
  std::string yaml = "---\n";
  for (const std::string& tube : tubes) yaml.append("- ").append(tube).append("\n");
  append_yaml(out, yaml);
}

void append_tubes(std::string& out, const session::AllQueues& reply) {
  std::vector<std::string> names;
  for (const session::QueueFacts& queue : reply.queues) {
    names.push_back(queue.stats.queue.name.name);
  }
  append_tubes(out, names);
}

void append_stats_job(std::string& out, const session::Found& reply) {
  if (!is_there(reply)) {
    out += kNotFound;
    return;
  }
  const session::JobFound& job = *reply.job;
  const JobState state = job.state ? *job.state : JobState{};
  const bool is_delayed = state_name(job.status) == "delayed";
  Fields fields;
  fields.add("id", job.seq)
      .add("tube", job.queue)
      .add("state", state_name(job.status))
      .add("pri", job.record->priority)
      .add("age", whole_seconds(job.now - job.record->pushed_at))
      .add("delay", is_delayed ? time_left(job) : 0)
      .add("ttr", whole_seconds(job.lease))
      .add("time-left", time_left(job))
      .add("file", 0)
      .add("reserves", state.attempts)
      .add("timeouts", ended_so(state, AttemptOutcome::lease_expired))
      .add("releases", ended_so(state, AttemptOutcome::released))
      .add("buries", ended_so(state, AttemptOutcome::buried))
      .add("kicks", state.generation - 1);
  append_yaml(out, fields.text());
}

void append_stats_tube(std::string& out, const session::QueueFound& reply,
                       const BeanstalkTubeCensus& census) {
  if (!reply.queue) {
    out += kNotFound;
    return;
  }
  const session::QueueFacts& queue = *reply.queue;
  const QueueTotals& totals = queue.stats.totals;
  JobCounts jobs;
  jobs.add(queue);
  Fields fields;
  fields.add("name", queue.stats.queue.name.name);
  jobs.write(fields);
  fields.add("total-jobs", totals.pushed)
      .add("current-using", census.using_it)
      .add("current-watching", census.watching)
      .add("current-waiting", census.waiting)
      .add("cmd-delete", totals.completed + totals.dropped)
      .add("cmd-pause-tube", census.pauses)
      .add("pause", whole_seconds(queue.pause.value_or(Duration{})))
      .add("pause-time-left", whole_seconds(queue.paused_for.value_or(Duration{})));
  append_yaml(out, fields.text());
}

void append_stats(std::string& out, const session::AllQueues& reply,
                  const BeanstalkCensus& census) {
  JobCounts jobs;
  std::uint64_t pushed = 0;
  std::uint64_t timeouts = 0;
  for (const session::QueueFacts& queue : reply.queues) {
    jobs.add(queue);
    pushed += queue.stats.totals.pushed;
    timeouts += queue.stats.totals.lease_expired;
  }
  Fields fields;
  jobs.write(fields);
  for (const BeanstalkVerb verb : kCountedVerbs) {
    fields.add(fmt::format("cmd-{}", beanstalk_verb_name(verb)), census.stats.count(verb));
  }
  fields.add("job-timeouts", since(timeouts, census.earlier_timeouts))
      .add("total-jobs", since(pushed, census.earlier_jobs))
      .add("max-job-size", census.max_job_bytes)
      .add("current-tubes", reply.queues.size())
      .add("current-connections", census.stats.connections)
      .add("current-producers", census.producers)
      .add("current-workers", census.workers)
      .add("current-waiting", census.waiting)
      .add("total-connections", census.total_connections);
  write_process(fields, census);
  fields.add("binlog-oldest-index", 0)
      .add("binlog-current-index", 0)
      .add("binlog-records-migrated", 0)
      .add("binlog-records-written", 0)
      .add("binlog-max-size", 0)
      .add("draining", census.draining);
  write_system(fields, census);
  append_yaml(out, fields.text());
}

}  // namespace reprise::server
