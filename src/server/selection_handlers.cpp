#include <fmt/format.h>

#include <utility>

#include "base/json_fields.h"
#include "base/rate.h"
#include "server/handlers.h"
#include "server/operation_json.h"

namespace reprise::server {
namespace {

constexpr Duration kDefaultWait = std::chrono::seconds(10);
constexpr Duration kLongestWait = std::chrono::minutes(10);
constexpr std::uint64_t kMaxGroups = 1000;

// What a retry or purge asks for.
struct SelectionBody {
  std::optional<std::vector<std::string>> ids;
  StartOperationCommand operation;
  bool dry_run = false;
  Duration wait{};
};

Result<std::vector<std::string>> read_ids(const Json& json, const Limits& limits) {
  if (json.array() == nullptr) {
    return Error{Errc::invalid_request, "ids: expected an array of job ids"};
  }
  if (json.array()->size() > limits.max_batch_jobs) {
    return Error{Errc::batch_too_many_jobs,
                 fmt::format("more than {} ids in one call; use a filter", limits.max_batch_jobs)};
  }
  std::vector<std::string> ids;
  for (const Json& id : *json.array()) {
    if (id.string() == nullptr) {
      return Error{Errc::invalid_request, fmt::format("ids[{}]: expected a job id", ids.size())};
    }
    ids.push_back(*id.string());
  }
  return ids;
}

// Fields that only a filter can have.
void refuse_beside_ids(JsonFields& fields) {
  for (const std::string_view name : {"dry_run", "limit", "rate", "wait"}) {
    if (const Json* value = fields.peek(name); value != nullptr && !value->is_null()) {
      fields.fail(name, "goes with filter, not with ids");
    }
  }
}

void read_pace(JsonFields& fields, SelectionBody& body) {
  fields.read("dry_run", body.dry_run);
  fields.read("limit", body.operation.limit);
  if (body.operation.limit == 0U) fields.fail("limit", "must be at least 1");
  std::string rate;
  if (fields.read("rate", rate)) {
    if (const auto parsed = parse_rate(rate)) {
      body.operation.rate = *parsed;
    } else {
      fields.fail("rate", parsed.error().detail);
    }
  }
  body.wait = body.operation.rate ? Duration::zero() : kDefaultWait;
  fields.read("wait", body.wait);
  if (body.wait > kLongestWait) fields.fail("wait", "must be at most 10m");
}

Result<SelectionBody> read_body(Api& api, Request& request, OperationKind kind) {
  auto queue = request.queue_name();
  if (!queue) return queue.error();
  REPRISE_TRY(request.query.finish());
  const auto json = request.json_body();
  if (!json) return json.error();
  SelectionBody body;
  body.operation = {.kind = kind, .queue = std::move(*queue), .asked_by = request.caller};
  JsonFields fields(*json);
  const Json* ids = fields.peek("ids");
  const Json* filter = fields.peek("filter");
  const bool has_ids = ids != nullptr && !ids->is_null();
  const bool has_filter = filter != nullptr && !filter->is_null();
  if (has_ids == has_filter) {
    fields.fail(has_ids ? "filter" : "ids",
                has_ids ? "goes without ids: give one of the two"
                        : "give ids, or a filter ({} selects all)",
                Errc::invalid_request);
  } else if (has_ids) {
    refuse_beside_ids(fields);
  } else {
    read_pace(fields, body);
  }
  REPRISE_TRY(fields.finish());
  if (has_ids) {
    auto read = read_ids(*ids, api.broker.limits());
    if (!read) return read.error();
    body.ids = *std::move(read);
    return body;
  }
  auto read = filter_from_json(*filter);
  if (!read) return read.error();
  body.operation.filter = *std::move(read);
  if (kind == OperationKind::purge && body.operation.filter.status == JobStatus::failed) {
    return Error{Errc::invalid_field, "filter.status: only dead jobs can be purged"};
  }
  return body;
}

Status select_jobs(Api& api, Request& request, const Exchange& exchange, OperationKind kind) {
  auto body = read_body(api, request, kind);
  if (!body) return body.error();
  if (body->ids) {
    SelectionRequest selection{.queue = std::move(body->operation.queue),
                               .ids = *std::move(body->ids),
                               .asked_by = request.caller};
    auto done = exchange.then<SelectionReply>(
        [kind](const SelectionReply& reply) { return selection_response(kind, reply); });
    if (kind == OperationKind::retry) {
      api.broker.retry(std::move(selection), std::move(done));
    } else {
      api.broker.purge(std::move(selection), std::move(done));
    }
  } else if (body->dry_run) {
    api.broker.preview(std::move(body->operation),
                       exchange.then<SelectionPreview>([kind](const SelectionPreview& preview) {
                         return preview_response(kind, preview);
                       }));
  } else {
    api.broker.start_operation(std::move(body->operation), body->wait,
                               exchange.then<Operation>(operation_started_response));
  }
  return ok();
}

}  // namespace

Status retry_jobs(Api& api, Request& request, const Exchange& exchange) {
  return select_jobs(api, request, exchange, OperationKind::retry);
}

Status purge_jobs(Api& api, Request& request, const Exchange& exchange) {
  return select_jobs(api, request, exchange, OperationKind::purge);
}

Status group_errors(Api& api, Request& request, const Exchange& exchange) {
  auto queue = request.queue_name();
  if (!queue) return queue.error();
  ErrorGroupsQuery query{.queue = std::move(*queue)};
  if (const auto status = request.query.take("status")) {
    query.status = status_from_name(*status);
    if (query.status != JobStatus::dead && query.status != JobStatus::failed) {
      request.query.fail("status", "must be dead or failed");
    }
  }
  if (const auto limit = request.query.take_number("limit", 1, kMaxGroups)) {
    query.limit = static_cast<std::uint32_t>(*limit);
  }
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.broker.error_groups(std::move(query), exchange.then<ErrorGroups>(error_groups_response));
  return ok();
}

}  // namespace reprise::server
