// Handlers: one function per route. A handler parses, calls the broker and answers; rules about
// jobs live in the engine.
// Returning an error answers the request with it; returning ok means that the exchange has its
// reply already or that the broker has its callback.
// Threads: handlers run on the io thread of their connection. Request and its views are only valid
// during the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/result.h"
#include "base/time.h"
#include "broker/broker.h"
#include "model/ingest_routes.h"
#include "model/webhook.h"
#include "server/beanstalk_stats.h"
#include "server/exchange.h"
#include "server/query.h"
#include "server/request_gate.h"
#include "server/server_stats.h"
#include "server/waiting_room.h"
#include "worker/worker_service.h"

namespace reprise::server {

// What handlers work with; one per server.
struct Api {
  Broker& broker;
  ServerStats& stats;
  Timestamp started_at;
  std::function<WebhookStats()> webhook_stats;
  std::function<BeanstalkStats()> beanstalk_stats;
  worker::WorkerService* workers;  // null: this server runs none
  const IngestRoutes& ingest_routes;
  WaitingRoom waiting_room{};  // for replies that wait for a run or a log
};

struct Request;

// Errc::project_conflict when the directory that the caller took the namespace from is not that of
// the project of this name.
Status check_project_root(const Api& api, const Request& request);
// Errc::workers_disabled unless this server runs workers.
Status expect_workers(const Api& api);
// Errc::external_queue: nothing is stored in such a queue, so there is nothing to push, claim or
// configure.
Status expect_stored(const Api& api, const QueueName& queue);
// A project's directory: "root", an absolute path. Like JsonFields::read.
bool read_root(JsonFields& fields, std::string& root);

struct Request {
  const RequestHead& head;
  std::string_view body;
  std::string queue;  // {queue} and {id}, {key} or {name} of the path, decoded; empty: none
  std::string id;
  Query query;
  std::string caller;  // the name of the token it came with; empty: none was needed

  // {queue} with the parameter `namespace`, both checked.
  Result<QueueName> queue_name();
  // The parameter `namespace`, checked; empty for *, all of them.
  Result<std::string> namespace_or_all();
  // The parameter `namespace`, checked; for routes that take no other.
  Result<std::string> only_namespace();
  // An empty body counts as {}.
  Result<Json> json_body() const;
  // For routes that take no body: an empty one and {} pass.
  Status expect_no_fields() const;
};

using Handler = Status (*)(Api& api, Request& request, const Exchange& exchange);

// queue_handlers.cpp
Status list_queues(Api& api, Request& request, const Exchange& exchange);
Status put_queue(Api& api, Request& request, const Exchange& exchange);
Status get_queue(Api& api, Request& request, const Exchange& exchange);
Status patch_queue(Api& api, Request& request, const Exchange& exchange);
Status delete_queue(Api& api, Request& request, const Exchange& exchange);
Status pause_queue(Api& api, Request& request, const Exchange& exchange);
Status resume_queue(Api& api, Request& request, const Exchange& exchange);
// push_handler.cpp
Status push_jobs(Api& api, Request& request, const Exchange& exchange);
// ingest_handler.cpp
Status ingest_events(Api& api, Request& request, const Exchange& exchange);
// lease_handlers.cpp
Status claim_jobs(Api& api, Request& request, const Exchange& exchange);
Status ack_leases(Api& api, Request& request, const Exchange& exchange);
Status fail_leases(Api& api, Request& request, const Exchange& exchange);
Status release_leases(Api& api, Request& request, const Exchange& exchange);
Status extend_leases(Api& api, Request& request, const Exchange& exchange);
// job_handlers.cpp
Status browse_jobs(Api& api, Request& request, const Exchange& exchange);
Status show_job(Api& api, Request& request, const Exchange& exchange);
Status drop_job(Api& api, Request& request, const Exchange& exchange);
// selection_handlers.cpp
Status retry_jobs(Api& api, Request& request, const Exchange& exchange);
Status purge_jobs(Api& api, Request& request, const Exchange& exchange);
Status group_errors(Api& api, Request& request, const Exchange& exchange);
// hook_handlers.cpp
Status test_hook(Api& api, Request& request, const Exchange& exchange);
Status replay_hook(Api& api, Request& request, const Exchange& exchange);
// config_handlers.cpp
Status list_config(Api& api, Request& request, const Exchange& exchange);
Status show_config(Api& api, Request& request, const Exchange& exchange);
Status set_config(Api& api, Request& request, const Exchange& exchange);
Status unset_config(Api& api, Request& request, const Exchange& exchange);
// throttle_handlers.cpp
Status list_throttles(Api& api, Request& request, const Exchange& exchange);
Status show_throttle(Api& api, Request& request, const Exchange& exchange);
Status set_throttle(Api& api, Request& request, const Exchange& exchange);
Status unset_throttle(Api& api, Request& request, const Exchange& exchange);
// project_handlers.cpp
Status list_projects(Api& api, Request& request, const Exchange& exchange);
Status put_project(Api& api, Request& request, const Exchange& exchange);
Status delete_project(Api& api, Request& request, const Exchange& exchange);
// worker_handlers.cpp
Status list_workers(Api& api, Request& request, const Exchange& exchange);
Status start_workers(Api& api, Request& request, const Exchange& exchange);
Status stop_workers(Api& api, Request& request, const Exchange& exchange);
Status restart_workers(Api& api, Request& request, const Exchange& exchange);
Status resize_worker(Api& api, Request& request, const Exchange& exchange);
Status refresh_queue(Api& api, Request& request, const Exchange& exchange);
// run_handlers.cpp
Status start_run(Api& api, Request& request, const Exchange& exchange);
Status list_runs(Api& api, Request& request, const Exchange& exchange);
Status show_run(Api& api, Request& request, const Exchange& exchange);
Status cancel_run(Api& api, Request& request, const Exchange& exchange);
Status show_run_log(Api& api, Request& request, const Exchange& exchange);
Status show_worker_log(Api& api, Request& request, const Exchange& exchange);
// timer_handler.cpp
Status list_timers(Api& api, Request& request, const Exchange& exchange);
// operation_handlers.cpp
Status list_operations(Api& api, Request& request, const Exchange& exchange);
Status show_operation(Api& api, Request& request, const Exchange& exchange);
Status cancel_operation(Api& api, Request& request, const Exchange& exchange);
Status list_audit(Api& api, Request& request, const Exchange& exchange);
// event_handler.cpp
Status stream_events(Api& api, Request& request, const Exchange& exchange);
// backup_handler.cpp
Status make_backup(Api& api, Request& request, const Exchange& exchange);
// status_handlers.cpp
Status show_status(Api& api, Request& request, const Exchange& exchange);
Status show_health(Api& api, Request& request, const Exchange& exchange);
Status show_readiness(Api& api, Request& request, const Exchange& exchange);
Status show_metrics(Api& api, Request& request, const Exchange& exchange);
Status show_openapi(Api& api, Request& request, const Exchange& exchange);
Status show_welcome(Api& api, Request& request, const Exchange& exchange);

}  // namespace reprise::server
