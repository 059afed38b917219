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
#include "base/result.h"
#include "base/time.h"
#include "broker/broker.h"
#include "model/webhook.h"
#include "server/exchange.h"
#include "server/query.h"
#include "server/request_gate.h"
#include "server/server_stats.h"

namespace reprise::server {

// What handlers work with; one per server.
struct Api {
  Broker& broker;
  const ServerStats& stats;
  Timestamp started_at;
  std::function<WebhookStats()> webhook_stats;
};

struct Request {
  const RequestHead& head;
  std::string_view body;
  std::string queue;  // {queue} and {id} of the path, decoded; empty when it has none
  std::string id;
  Query query;
  std::string caller;  // the name of the token it came with; empty: none was needed

  // {queue} with the parameter `namespace`, both checked.
  Result<QueueName> queue_name();
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
