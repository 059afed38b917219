// ServerCore: what all connections of a server share. It lives until the last connection is gone,
// which may be after the server: a broker that answers late still finds it.
// Threads: constant after construction, apart from counters, which are atomic, and the gate, which
// has its own lock.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/time.h"
#include "broker/broker.h"
#include "server/access_tokens.h"
#include "server/handlers.h"
#include "server/host_policy.h"
#include "server/http_server.h"
#include "server/server_stats.h"

namespace reprise::server {

// Counts connections, so that stop() can wait for the last one.
class ConnectionGate {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++inside_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }
  // False when it took longer than `longest`.
  bool wait_until_empty(Duration longest) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, longest, [&] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  std::uint64_t inside_ = 0;  // protected by mutex_
};

struct ServerCore {
  ServerCore(Broker& a_broker, HttpServerOptions an_options, HostPolicy a_host_policy)
      : broker(a_broker),
        options(std::move(an_options)),
        tokens(options.tokens),
        host_policy(std::move(a_host_policy)),
        api{broker,          stats,
            broker.now(),    options.webhook_stats,
            options.workers, options.ingest_routes} {}

  Broker& broker;
  const HttpServerOptions options;
  const AccessTokens tokens;
  const HostPolicy host_policy;
  ServerStats stats;
  Api api;
  ConnectionGate gate;
};

}  // namespace reprise::server
