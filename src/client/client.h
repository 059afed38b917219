// Client: the HTTP API (docs/api.md) as calls, for one server and one namespace.
// A call gives the server's answer as it came, be it a result or a refusal; its error is always
// Errc::unreachable: no answer, or one that Reprise would not give.
// No rule of the server is repeated here: names, limits and statuses are the daemon's business.
// Threads: one owner, no locks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_view.h"
#include "base/result.h"
#include "base/time.h"
#include "client/http_client.h"
#include "client/url.h"

namespace reprise::client {

struct Reply {
  int status = 0;
  std::string body;  // one JSON value

  // Borrows `body`.
  JsonView json() const { return JsonView(body); }
  // The whole request was refused. Items of a multi-item call carry their own errors, and an
  // operation that has failed is a good answer with a field `error`.
  bool refused() const { return status >= 400 && json()["error"].is_object(); }
};

class Client {
 public:
  Client(HttpClient http, std::string ns) : http_(std::move(http)), namespace_(std::move(ns)) {}

  const std::string& server() const { return http_.server(); }
  const std::string& ns() const { return namespace_; }
  // The directory that the namespace was taken from: the server refuses what is meant for the
  // project of another.
  void set_project_root(std::string root) { project_root_ = std::move(root); }

  // Asked while a call waits for its answer; false gives it up. See HttpClient.
  void set_keep_going(std::function<bool()> keep_going) {
    http_.set_keep_going(std::move(keep_going));
  }

  Result<Reply> list_queues(bool all_namespaces = false);
  // `config` is a JSON object. With `replace` an existing queue takes the new config; without it it
  // is refused.
  Result<Reply> create_queue(std::string_view queue, std::string config, bool replace);
  Result<Reply> show_queue(std::string_view queue);
  Result<Reply> update_queue(std::string_view queue, std::string config);
  Result<Reply> delete_queue(std::string_view queue);
  Result<Reply> pause_queue(std::string_view queue);
  Result<Reply> resume_queue(std::string_view queue);
  // Has an external queue listed now.
  Result<Reply> refresh_queue(std::string_view queue);

  // Bodies are the JSON of docs/api.md.
  Result<Reply> push(std::string_view queue, std::string body);
  // `wait` is what the body asks for: the answer may take that long.
  Result<Reply> claim(std::string_view queue, std::string body, Duration wait);
  // `verb` is ack, fail, release or extend.
  Result<Reply> end_leases(std::string_view verb, std::string body);

  Result<Reply> list_jobs(std::string_view queue, QueryParameters filter);
  Result<Reply> show_job(std::string_view queue, std::string_view id);
  Result<Reply> drop_job(std::string_view queue, std::string_view id);

  // `verb` is retry or purge. The answer comes when the jobs were found and done, or when the
  // `wait` in the body is over.
  Result<Reply> change_dead_jobs(std::string_view queue, std::string_view verb, std::string body);
  Result<Reply> list_errors(std::string_view queue, QueryParameters filter);

  // `what` is test or replay. The answer comes when the script has run for each sample or job.
  Result<Reply> try_hook(std::string_view queue, std::string_view what, std::string body);

  Result<Reply> list_config();
  Result<Reply> get_config(std::string_view key);
  // `value` is UTF-8.
  Result<Reply> set_config(std::string_view key, std::string_view value);
  Result<Reply> unset_config(std::string_view key);

  Result<Reply> list_throttles();
  // Without `burst` the server chooses one.
  Result<Reply> set_throttle(std::string_view key, std::string_view rate,
                             std::optional<std::uint64_t> burst);
  Result<Reply> unset_throttle(std::string_view key);

  // `root` is an absolute path on the server's machine.
  Result<Reply> add_project(std::string_view name, std::string_view root);
  Result<Reply> list_projects();
  Result<Reply> remove_project(std::string_view name);

  Result<Reply> list_workers(bool all_namespaces = false);
  // `verb` is start, stop, restart or resize.
  Result<Reply> change_workers(std::string_view verb, std::string body);

  // In the parameters below a `namespace` wins over the client's. `wait` is how long the answer
  // may take; it is added to the parameters unless it is zero.
  Result<Reply> start_run(std::string body);
  Result<Reply> list_runs(QueryParameters filter);
  Result<Reply> show_run(std::string_view id, Duration wait = {});
  Result<Reply> cancel_run(std::string_view id);
  Result<Reply> run_log(std::string_view id, QueryParameters parameters, Duration wait = {});
  Result<Reply> worker_log(std::string_view name, QueryParameters parameters, Duration wait = {});
  Result<Reply> timers(QueryParameters parameters);

  Result<Reply> list_operations(const QueryParameters& filter);
  Result<Reply> show_operation(std::string_view id);
  Result<Reply> cancel_operation(std::string_view id);
  // The client's namespace plays no part: name it in `filter`.
  Result<Reply> audit(const QueryParameters& filter);

  Result<Reply> status();
  // `directory` is an absolute path on the server's machine. The answer comes when the copy is
  // whole.
  Result<Reply> backup(std::string_view directory);

  // Streams events until the handler or the server ends it; see HttpClient::stream. `after` is the
  // id of the last event seen; empty: only new ones. The reply is empty unless it is a refusal.
  // The client's namespace plays no part: name it in `filter`.
  Result<Reply> events(const QueryParameters& filter, std::string_view after,
                       const HttpClient::StreamHandler& handler);

 private:
  std::string queue_target(std::string_view queue, std::string_view rest = {},
                           QueryParameters more = {}) const;
  std::string config_target(std::string_view key) const;
  std::string throttle_target(std::string_view key) const;
  // With the client's namespace unless they name one.
  QueryParameters in_namespace(QueryParameters parameters) const;
  Result<Reply> wait_for(std::string target, QueryParameters parameters, Duration wait);
  Result<Reply> call(HttpRequest request);

  HttpClient http_;
  std::string namespace_;
  std::string project_root_;  // empty: none
};

}  // namespace reprise::client
