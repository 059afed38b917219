// Runs of pipelines: trials, what became of them, and logs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "base/json_view.h"
#include "base/text.h"
#include "model/limits.h"
#include "server/handlers.h"
#include "server/log_reader.h"
#include "server/worker_json.h"

namespace reprise::server {
namespace {

using worker::LogPart;
using worker::LogQuery;
using worker::RunView;

constexpr Duration kLongestWait = std::chrono::minutes(1);
constexpr std::uint64_t kMaxRuns = 1000;
constexpr std::size_t kShortestIdPrefix = 4;
// A whole character fits, so that a reader always gets on.
constexpr std::uint64_t kLeastLogBytes = 4;
constexpr std::uint64_t kMostLogBytes = 256ULL << 10;
constexpr std::uint64_t kMaxLogOffset = 1ULL << 53;

// Ids lead to files: nothing but what an id may be made of gets through.
bool is_id_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

Result<std::string> run_id(Request& request) {
  const std::string& id = request.id;
  if (!std::ranges::all_of(id, is_id_character) || id.size() > kJobIdChars) {
    return Error{Errc::run_not_found, fmt::format("no run '{}'", cut_at_character(id, 32))};
  }
  if (id.size() < kShortestIdPrefix) {
    return Error{Errc::invalid_field,
                 fmt::format("id '{}': give at least {} characters of it", id, kShortestIdPrefix)};
  }
  return std::move(request.id);
}

Duration read_wait(Query& query) {
  const Duration wait = query.take_duration("wait").value_or(Duration::zero());
  if (wait > kLongestWait) query.fail("wait", "must be at most 1m");
  return wait;
}

LogQuery read_log_query(Query& query) {
  LogQuery log;
  const auto offset = query.take_number("offset", 0, kMaxLogOffset);
  log.tail = query.take_number("tail", 0, kMaxLogOffset);
  if (offset && log.tail) query.fail("tail", "cannot stand beside offset");
  log.offset = offset.value_or(0);
  log.limit = query.take_number("limit", kLeastLogBytes, kMostLogBytes).value_or(kMostLogBytes);
  log.wait = read_wait(query);
  return log;
}

Result<worker::StartRunCommand> read_start(Request& request, const Limits& limits) {
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  const auto json = request.json_body();
  if (!json) return json.error();
  worker::StartRunCommand command{.ns = std::move(*ns)};
  JsonFields fields(*json);
  fields.read("pipeline", command.pipeline);
  fields.peek("item");
  read_root(fields, command.root);
  REPRISE_TRY(fields.finish());
  if (command.pipeline.empty()) {
    return Error{Errc::invalid_request, "pipeline: is missing: the name of one"};
  }
  REPRISE_TRY(check_name("pipeline", command.pipeline));
  command.item = JsonView(request.body)["item"].raw();  // byte for byte, as a payload is kept
  if (command.item.size() > limits.max_payload_bytes) {
    return Error{Errc::payload_too_large,
                 fmt::format("item: has {} bytes; the limit is {}", command.item.size(),
                             format_bytes(limits.max_payload_bytes))};
  }
  return command;
}

Result<worker::RunQuery> read_run_query(Request& request) {
  auto ns = request.namespace_or_all();
  if (!ns) return ns.error();
  Query& query = request.query;
  worker::RunQuery runs{.ns = std::move(*ns)};
  for (const auto& [what, name] :
       {std::pair("worker", &runs.worker), {"queue", &runs.queue}, {"pipeline", &runs.pipeline}}) {
    auto given = query.take(what);
    if (!given) continue;
    REPRISE_TRY(check_name(what, *given));
    *name = std::move(*given);
  }
  if (const auto name = query.take("status")) {
    runs.status = worker::run_status_from_name(*name);
    if (!runs.status) {
      query.fail("status", "must be running, succeeded, failed, cancelled or lost");
    }
  }
  if (const auto limit = query.take_number("limit", 1, kMaxRuns)) {
    runs.limit = static_cast<std::uint32_t>(*limit);
  }
  REPRISE_TRY(query.finish());
  REPRISE_TRY(request.expect_no_fields());
  return runs;
}

// The callback of a call that may wait for something to happen.
template <class T>
Result<Done<T>> waiting_reply(Api& api, const Exchange& exchange, Duration wait,
                              Response (*encode)(const T&)) {
  if (wait <= Duration::zero()) return exchange.then<T>(encode);
  auto place = api.waiting_room.enter();
  if (!place) return place.error();
  exchange.watch_peer();
  return exchange.then<T>(
      [encode, place = std::move(*place)](const T& result) { return encode(result); });
}

Status answer_with_log(Api& api, const Exchange& exchange, LogSource source, LogQuery query) {
  auto done = waiting_reply<LogPart>(api, exchange, query.wait, log_response);
  if (!done) return done.error();
  read_log(std::move(source), std::move(query), std::move(*done));
  return ok();
}

}  // namespace

Status start_run(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto command = read_start(request, api.broker.limits());
  if (!command) return command.error();
  api.workers->start_run(std::move(*command), exchange.then<RunView>([](const RunView& run) {
    Response response = run_response(run);
    response.http_status = 201;
    return response;
  }));
  return ok();
}

Status list_runs(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto query = read_run_query(request);
  if (!query) return query.error();
  api.workers->list_runs(std::move(*query), exchange.then<std::vector<RunView>>(runs_response));
  return ok();
}

Status show_run(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto id = run_id(request);
  if (!id) return id.error();
  const Duration wait = read_wait(request.query);
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  auto done = waiting_reply<RunView>(api, exchange, wait, run_response);
  if (!done) return done.error();
  api.workers->show_run(std::move(*id), wait, std::move(*done));
  return ok();
}

Status cancel_run(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto id = run_id(request);
  if (!id) return id.error();
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  api.workers->cancel_run(std::move(*id), exchange.then<RunView>(run_response));
  return ok();
}

Status show_run_log(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  auto id = run_id(request);
  if (!id) return id.error();
  LogQuery query = read_log_query(request.query);
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  auto source = [workers = api.workers, id = std::move(*id)](LogQuery part, Done<LogPart> done) {
    workers->read_run_log(id, std::move(part), std::move(done));
  };
  return answer_with_log(api, exchange, std::move(source), std::move(query));
}

Status show_worker_log(Api& api, Request& request, const Exchange& exchange) {
  REPRISE_TRY(expect_workers(api));
  REPRISE_TRY(check_name("worker", request.id));
  LogQuery query = read_log_query(request.query);
  auto ns = request.only_namespace();
  if (!ns) return ns.error();
  REPRISE_TRY(request.expect_no_fields());
  auto source = [workers = api.workers, ns = std::move(*ns), name = std::move(request.id)](
                    LogQuery part, Done<LogPart> done) {
    workers->read_worker_log(ns, name, std::move(part), std::move(done));
  };
  return answer_with_log(api, exchange, std::move(source), std::move(query));
}

}  // namespace reprise::server
