#include "client/client.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"

namespace reprise::client {
namespace {

// Beyond the wait itself: the way there and back and the commit.
constexpr auto kClaimMargin = std::chrono::seconds(30);
// Large copies to slow disks take their time.
constexpr auto kBackupTimeout = std::chrono::hours(24);
// A filter may have to look at every dead job before it can count them.
constexpr auto kFilterTimeout = std::chrono::minutes(15);

Error not_reprise(const std::string& server, int status) {
  return {Errc::unreachable,
          fmt::format("{} answered (HTTP {}), but not as a Reprise server", server, status)};
}

}  // namespace

Result<Reply> Client::call(const HttpRequest& request) {
  auto response = http_.send(request);
  if (!response) return response.error();
  Reply reply{.status = response->status, .body = std::move(response->body)};
  while (reply.body.ends_with('\n')) reply.body.pop_back();
  // A proxy or a stranger on the port may answer anything.
  if (!reply.json().is_object() || (reply.status >= 300 && reply.status < 400)) {
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

Result<Reply> Client::push(std::string_view queue, std::string body) {
  return call({.method = "POST", .target = queue_target(queue, "/push"), .body = std::move(body)});
}

Result<Reply> Client::claim(std::string_view queue, std::string body, Duration wait) {
  return call(
      {.method = "POST",
       .target = queue_target(queue, "/claim"),
       .body = std::move(body),
       .timeout = std::chrono::duration_cast<std::chrono::milliseconds>(wait + kClaimMargin)});
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
