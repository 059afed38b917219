#include "client/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/json_writer.h"

namespace reprise::client {
namespace {

// Beyond the wait itself: the way there and back and the commit.
constexpr auto kWaitMargin = std::chrono::seconds(30);
// Large copies to slow disks take their time.
constexpr auto kBackupTimeout = std::chrono::hours(24);
// A filter may have to look at every dead job before it can count them.
constexpr auto kFilterTimeout = std::chrono::minutes(15);
// Ten thousand jobs, each of which may use up the largest budget of a hook twice.
constexpr auto kHookTimeout = std::chrono::hours(6);
// A project may declare a thousand queues, each of which is a commit.
constexpr auto kProjectTimeout = std::chrono::minutes(5);

Error not_reprise(const std::string& server, int status) {
  return {Errc::unreachable,
          fmt::format("{} answered (HTTP {}), but not as a Reprise server", server, status)};
}

}  // namespace

Result<Reply> Client::call(HttpRequest request) {
  if (!project_root_.empty()) {
    request.headers.push_back("Reprise-Project-Root: " + percent_encode(project_root_));
  }
  auto response = http_.send(request);
  if (!response) return response.error();
  Reply reply{.status = response->status, .body = std::move(response->body)};
  while (reply.body.ends_with('\n')) reply.body.pop_back();
  // A proxy or a stranger on the port may answer anything.
  const bool says_why = reply.json()["error"].is_object() || reply.json()["results"].is_array();
  if (!reply.json().is_object() || (reply.status >= 300 && reply.status < 400) ||
      (reply.status >= 400 && !says_why)) {
    return not_reprise(server(), reply.status);
  }
  return reply;
}

std::string Client::queue_target(std::string_view queue, std::string_view rest,
                                 QueryParameters more) const {
  more.emplace_back("namespace", namespace_);
  return fmt::format("/v1/queues/{}{}{}", percent_encode(queue), rest, encode_query(more));
}

Result<Reply> Client::list_queues(bool all_namespaces) {
  const QueryParameters which{{"namespace", all_namespaces ? "*" : namespace_}};
  return call({.target = "/v1/queues" + encode_query(which)});
}

Result<Reply> Client::create_queue(std::string_view queue, std::string config, bool replace) {
  HttpRequest request{.method = "PUT", .target = queue_target(queue), .body = std::move(config)};
  if (!replace) request.headers.emplace_back("If-None-Match: *");
  return call(request);
}

Result<Reply> Client::show_queue(std::string_view queue) {
  return call({.target = queue_target(queue)});
}

Result<Reply> Client::update_queue(std::string_view queue, std::string config) {
  return call({.method = "PATCH", .target = queue_target(queue), .body = std::move(config)});
}

Result<Reply> Client::delete_queue(std::string_view queue) {
  return call({.method = "DELETE", .target = queue_target(queue)});
}

Result<Reply> Client::pause_queue(std::string_view queue) {
  return call({.method = "POST", .target = queue_target(queue, "/pause"), .body = ""});
}

Result<Reply> Client::resume_queue(std::string_view queue) {
  return call({.method = "POST", .target = queue_target(queue, "/resume"), .body = ""});
}

Result<Reply> Client::refresh_queue(std::string_view queue) {
  return call({.method = "POST", .target = queue_target(queue, "/refresh"), .body = ""});
}

Result<Reply> Client::push(std::string_view queue, std::string body) {
  return call({.method = "POST", .target = queue_target(queue, "/push"), .body = std::move(body)});
}

Result<Reply> Client::claim(std::string_view queue, std::string body, Duration wait) {
  return call(
      {.method = "POST",
       .target = queue_target(queue, "/claim"),
       .body = std::move(body),
       .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(wait + kWaitMargin)});
}

Result<Reply> Client::end_leases(std::string_view verb, std::string body) {
  return call({.method = "POST", .target = fmt::format("/v1/{}", verb), .body = std::move(body)});
}

Result<Reply> Client::list_jobs(std::string_view queue, QueryParameters filter) {
  return call({.target = queue_target(queue, "/jobs", std::move(filter))});
}

Result<Reply> Client::show_job(std::string_view queue, std::string_view id) {
  return call({.target = queue_target(queue, "/jobs/" + percent_encode(id))});
}

Result<Reply> Client::drop_job(std::string_view queue, std::string_view id) {
  return call({.method = "DELETE", .target = queue_target(queue, "/jobs/" + percent_encode(id))});
}

Result<Reply> Client::change_dead_jobs(std::string_view queue, std::string_view verb,
                                       std::string body) {
  return call({.method = "POST",
               .target = queue_target(queue, fmt::format("/{}", verb)),
               .body = std::move(body),
               .timeout = kFilterTimeout});
}

Result<Reply> Client::list_errors(std::string_view queue, QueryParameters filter) {
  return call(
      {.target = queue_target(queue, "/errors", std::move(filter)), .timeout = kFilterTimeout});
}

Result<Reply> Client::try_hook(std::string_view queue, std::string_view what, std::string body) {
  return call({.method = "POST",
               .target = queue_target(queue, fmt::format("/hooks/{}", what)),
               .body = std::move(body),
               .timeout = kHookTimeout});
}

std::string Client::config_target(std::string_view key) const {
  return fmt::format("/v1/config/{}{}", percent_encode(key),
                     encode_query({{"namespace", namespace_}}));
}

Result<Reply> Client::list_config() {
  return call({.target = "/v1/config" + encode_query({{"namespace", namespace_}})});
}

Result<Reply> Client::get_config(std::string_view key) {
  return call({.target = config_target(key)});
}

Result<Reply> Client::set_config(std::string_view key, std::string_view value) {
  JsonWriter body;
  body.begin_object().key("value").value(value).end_object();
  return call({.method = "PUT", .target = config_target(key), .body = body.take()});
}

Result<Reply> Client::unset_config(std::string_view key) {
  return call({.method = "DELETE", .target = config_target(key)});
}

std::string Client::throttle_target(std::string_view key) const {
  return fmt::format("/v1/throttles/{}{}", percent_encode(key),
                     encode_query({{"namespace", namespace_}}));
}

Result<Reply> Client::list_throttles() {
  return call({.target = "/v1/throttles" + encode_query({{"namespace", namespace_}})});
}

Result<Reply> Client::set_throttle(std::string_view key, std::string_view rate,
                                   std::optional<std::uint64_t> burst) {
  JsonWriter body;
  body.begin_object().key("rate").value(rate);
  if (burst) body.key("burst").value(*burst);
  body.end_object();
  return call({.method = "PUT", .target = throttle_target(key), .body = body.take()});
}

Result<Reply> Client::unset_throttle(std::string_view key) {
  return call({.method = "DELETE", .target = throttle_target(key)});
}

QueryParameters Client::in_namespace(QueryParameters parameters) const {
  const auto is_namespace = [](const auto& parameter) { return parameter.first == "namespace"; };
  if (std::ranges::none_of(parameters, is_namespace)) {
    parameters.emplace_back("namespace", namespace_);
  }
  return parameters;
}

Result<Reply> Client::add_project(std::string_view name, std::string_view root) {
  JsonWriter body;
  body.begin_object().key("root").value(root).end_object();
  return call({.method = "PUT",
               .target = "/v1/projects/" + percent_encode(name),
               .body = body.take(),
               .timeout = kProjectTimeout});
}

Result<Reply> Client::list_projects() { return call({.target = "/v1/projects"}); }

Result<Reply> Client::remove_project(std::string_view name) {
  return call({.method = "DELETE", .target = "/v1/projects/" + percent_encode(name)});
}

Result<Reply> Client::list_workers(bool all_namespaces) {
  const QueryParameters which{{"namespace", all_namespaces ? "*" : namespace_}};
  return call({.target = "/v1/workers" + encode_query(which)});
}

Result<Reply> Client::change_workers(std::string_view verb, std::string body) {
  return call({.method = "POST",
               .target = fmt::format("/v1/workers/{}{}", verb, encode_query(in_namespace({}))),
               .body = std::move(body),
               .timeout = kProjectTimeout});
}

Result<Reply> Client::start_run(std::string body) {
  return call({.method = "POST",
               .target = "/v1/runs" + encode_query(in_namespace({})),
               .body = std::move(body),
               .timeout = kProjectTimeout});
}

Result<Reply> Client::list_runs(QueryParameters filter) {
  return call({.target = "/v1/runs" + encode_query(in_namespace(std::move(filter)))});
}

Result<Reply> Client::wait_for(std::string target, QueryParameters parameters, Duration wait) {
  if (wait > Duration::zero()) parameters.emplace_back("wait", format_duration(wait));
  return call(
      {.target = std::move(target) + encode_query(parameters),
       .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(wait + kWaitMargin)});
}

Result<Reply> Client::show_run(std::string_view id, Duration wait) {
  return wait_for("/v1/runs/" + percent_encode(id), {}, wait);
}

Result<Reply> Client::cancel_run(std::string_view id) {
  return call({.method = "POST",
               .target = fmt::format("/v1/runs/{}/cancel", percent_encode(id)),
               .body = ""});
}

Result<Reply> Client::run_log(std::string_view id, QueryParameters parameters, Duration wait) {
  return wait_for(fmt::format("/v1/runs/{}/log", percent_encode(id)), std::move(parameters), wait);
}

Result<Reply> Client::worker_log(std::string_view name, QueryParameters parameters, Duration wait) {
  return wait_for(fmt::format("/v1/workers/{}/log", percent_encode(name)),
                  in_namespace(std::move(parameters)), wait);
}

Result<Reply> Client::timers(QueryParameters parameters) {
  return call({.target = "/v1/timers" + encode_query(in_namespace(std::move(parameters)))});
}

Result<Reply> Client::list_operations(const QueryParameters& filter) {
  return call({.target = "/v1/operations" + encode_query(filter)});
}

Result<Reply> Client::show_operation(std::string_view id) {
  return call({.target = "/v1/operations/" + percent_encode(id)});
}

Result<Reply> Client::cancel_operation(std::string_view id) {
  return call({.method = "DELETE", .target = "/v1/operations/" + percent_encode(id)});
}

Result<Reply> Client::audit(const QueryParameters& filter) {
  return call({.target = "/v1/audit" + encode_query(filter)});
}

Result<Reply> Client::status() { return call({.target = "/v1/status"}); }

Result<Reply> Client::backup(std::string_view directory) {
  JsonWriter body;
  body.begin_object().key("directory").value(directory).end_object();
  return call(
      {.method = "POST", .target = "/v1/backup", .body = body.take(), .timeout = kBackupTimeout});
}

Result<Reply> Client::events(const QueryParameters& filter, std::string_view after,
                             const HttpClient::StreamHandler& handler) {
  HttpRequest request{.target = "/v1/events" + encode_query(filter)};
  request.headers.emplace_back("Accept: text/event-stream");
  if (!after.empty()) request.headers.push_back(fmt::format("Last-Event-ID: {}", after));
  auto response = http_.stream(request, handler);
  if (!response) return response.error();
  Reply reply{.status = response->status, .body = std::move(response->body)};
  if (reply.status > 200 && !reply.refused()) return not_reprise(server(), reply.status);
  return reply;
}

}  // namespace reprise::client
