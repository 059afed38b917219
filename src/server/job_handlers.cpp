#include <fmt/format.h>

#include <utility>

#include "model/error_fingerprint.h"
#include "server/handlers.h"
#include "server/job_json.h"

namespace reprise::server {
namespace {

constexpr std::size_t kShortestIdPrefix = 4;
constexpr std::uint64_t kMaxPageJobs = 1000;
constexpr std::string_view kHeaderPrefix = "header.";

struct JobName {
  QueueName queue;
  std::string id;
};

// The job a request names, for a route that takes nothing else.
Result<JobName> job_name(Request& request) {
  auto queue = request.queue_name();
  if (!queue) return queue.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  if (request.id.size() < kShortestIdPrefix) {
    return Error{Errc::invalid_field, fmt::format("id '{}': give at least {} characters of it",
                                                  request.id, kShortestIdPrefix)};
  }
  return JobName{std::move(*queue), std::move(request.id)};
}

void read_status(Query& query, JobFilter& filter) {
  const auto name = query.take("status");
  if (!name) return;
  filter.status = status_from_name(*name);
  if (!filter.status) {
    query.fail("status", "must be scheduled, pending, active, failed, dead or completed");
  }
}

void read_lane(Query& query, JobFilter& filter) {
  const auto name = query.take("lane");
  if (!name) return;
  if (*name == lane_name(Lane::fresh)) {
    filter.lane = Lane::fresh;
  } else if (*name == lane_name(Lane::retry)) {
    filter.lane = Lane::retry;
  } else {
    query.fail("lane", "must be fresh or retry");
  }
}

void read_fingerprint(Query& query, JobFilter& filter) {
  const auto text = query.take("fingerprint");
  if (!text) return;
  filter.fingerprint = parse_fingerprint(*text);
  if (!filter.fingerprint) query.fail("fingerprint", "must be 16 hexadecimal digits");
}

void read_reason(Query& query, JobFilter& filter) {
  const auto name = query.take("reason");
  if (!name) return;
  filter.reason = death_reason_from_name(*name);
  if (!filter.reason) {
    query.fail("reason",
               "must be max_attempts, final, lease_expired, worker_lost, expired or corrupt");
  }
}

void read_order(Query& query, BrowseQuery& browse) {
  const auto name = query.take("order");
  if (!name || *name == "push") return;
  const bool has_ended =
      browse.filter.status == JobStatus::dead || browse.filter.status == JobStatus::completed;
  if (*name != "newest") {
    query.fail("order", "must be push or newest");
  } else if (!has_ended) {
    query.fail("order", "newest needs status=dead or status=completed");
  }
  browse.order = BrowseOrder::newest;
}

Result<BrowseQuery> read_browse(Request& request) {
  auto queue = request.queue_name();
  if (!queue) return queue.error();
  Query& query = request.query;
  BrowseQuery browse{.queue = std::move(*queue)};
  read_status(query, browse.filter);
  read_lane(query, browse.filter);
  browse.filter.error = query.take("error").value_or("");
  browse.filter.error_type = query.take("error_type").value_or("");
  read_fingerprint(query, browse.filter);
  read_reason(query, browse.filter);
  browse.filter.older_than = query.take_duration("older_than");
  browse.filter.newer_than = query.take_duration("newer_than");
  read_order(query, browse);
  browse.filter.headers = query.take_prefixed(kHeaderPrefix);
  if (const auto limit = query.take_number("limit", 1, kMaxPageJobs)) {
    browse.limit = static_cast<std::uint32_t>(*limit);
  }
  browse.cursor = query.take("cursor").value_or("");
  REPRISE_TRY(query.finish());
  REPRISE_TRY(request.expect_no_fields());
  return browse;
}

Response page_response(const QueueName& queue, const BrowsePage& page) {
  JsonWriter out;
  out.begin_object().key("jobs").begin_array();
  for (const JobView& job : page.jobs) write_job(out, queue, job, JobDetail::brief);
  out.end_array().key("cursor");
  page.cursor.empty() ? out.null() : out.value(page.cursor);
  out.end_object();
  return json_response(std::move(out));
}

}  // namespace

Status browse_jobs(Api& api, Request& request, const Exchange& exchange) {
  auto query = read_browse(request);
  if (!query) return query.error();
  auto done = exchange.then<BrowsePage>(
      [queue = query->queue](const BrowsePage& page) { return page_response(queue, page); });
  api.broker.browse(std::move(*query), std::move(done));
  return ok();
}

Status show_job(Api& api, Request& request, const Exchange& exchange) {
  auto name = job_name(request);
  if (!name) return name.error();
  auto done = exchange.then<JobView>([queue = name->queue](const JobView& job) {
    JsonWriter out;
    write_job(out, queue, job, JobDetail::full);
    return json_response(std::move(out));
  });
  api.broker.show_job(std::move(name->queue), std::move(name->id), std::move(done));
  return ok();
}

Status drop_job(Api& api, Request& request, const Exchange& exchange) {
  auto name = job_name(request);
  if (!name) return name.error();
  auto done = exchange.then<DroppedJob>([](const DroppedJob& dropped) {
    JsonWriter out;
    out.begin_object().key("dropped").value(true);
    out.key("id").value(encode_job_id(dropped.job.seq));
    out.key("status").value(status_name(dropped.status)).end_object();
    return json_response(std::move(out));
  });
  api.broker.drop_job(std::move(name->queue), std::move(name->id), request.caller, std::move(done));
  return ok();
}

}  // namespace reprise::server
