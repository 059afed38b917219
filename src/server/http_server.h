// HttpServer: the HTTP API of docs/api.md over one broker.
//
// Every connection belongs to one of `io_threads` threads for its whole life, so that nothing of a
// connection needs a lock. Broker callbacks come on the broker's thread and are handed over through
// one mailbox per io thread.
//
// Invariants: a request is never answered before the broker has said that it is durable; replies of
// one connection leave in the order of their requests; jobs claimed for a connection that is gone
// are released at once.
// Threads: start() and stop() from one thread; address() and connections() from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "broker/broker.h"
#include "model/ingest_routes.h"
#include "model/webhook.h"
#include "server/access_tokens.h"
#include "server/beanstalk_stats.h"

namespace reprise::worker {
class WorkerService;
}  // namespace reprise::worker

namespace reprise::server {

struct HttpServerOptions {
  // "127.0.0.1:7333", "[::1]:7333", "localhost:7333"; port 0: any free one.
  std::string listen = "127.0.0.1:7333";
  // Empty: no authentication, which is allowed on loopback addresses only.
  std::vector<AccessToken> tokens;
  // Host names answered besides localhost, the loopback addresses and the address listened on.
  std::vector<std::string> allowed_hosts;
  unsigned io_threads = 1;
  std::uint64_t max_connections = 10000;

  std::uint64_t max_request_header_bytes = 16ULL << 10;
  std::uint64_t max_body_bytes = 24ULL << 20;
  // Large requests and replies in memory, of all connections together; beyond it: Errc::overloaded.
  std::uint64_t max_buffered_bytes = 256ULL << 20;

  // Queues of ingested events, where requests do not say.
  IngestRoutes ingest_routes;

  // For /metrics and /v1/status; empty: none are sent.
  std::function<WebhookStats()> webhook_stats;

  // For /metrics; empty: the beanstalk protocol is not spoken.
  std::function<BeanstalkStats()> beanstalk_stats;

  // Must outlive the server; null: projects, workers and runs are Errc::workers_disabled.
  worker::WorkerService* workers = nullptr;

  Duration header_timeout =
      std::chrono::seconds(10);  // from a request's first byte to its header's last
  Duration body_timeout = std::chrono::seconds(30);      // between two pieces of a body
  Duration idle_timeout = std::chrono::seconds(75);      // between two requests
  Duration write_timeout = std::chrono::seconds(30);     // without a byte of the reply leaving
  Duration event_keep_alive = std::chrono::seconds(15);  // between two comments on an event stream
};

class HttpServer {
 public:
  // Listens and serves from then on. The broker must outlive the server. Errors:
  // Errc::invalid_field for an address that cannot be used so (not loopback and no tokens),
  // Errc::io when listening fails.
  static Result<std::unique_ptr<HttpServer>> start(Broker& broker, HttpServerOptions options);
  ~HttpServer();  // stop() without grace

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it really listens: "127.0.0.1:7333", "[::1]:7333".
  std::string address() const;
  std::uint64_t connections() const;

  // From now on /readyz answers 503 shutting_down; everything else goes on. For a daemon that is
  // about to stop.
  void begin_shutdown();

  // Stops accepting, ends event streams and all that waits, answers the requests that are under
  // way, and closes. What is not answered after `grace` is cut off. Call it before broker.stop(),
  // so that the answers under way still come. Idempotent.
  void stop(Duration grace);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::server
