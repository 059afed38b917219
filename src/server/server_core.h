// ServerCore: what all connections of a server share. It lives until the last connection is gone,
// which may be after the server: a broker that answers late still finds it.
// Threads: constant after construction, apart from counters, which are atomic, and the gate and the
// wrong tokens, which have locks of their own.
#pragma once

#include <utility>

#include "broker/broker.h"
#include "server/access_tokens.h"
#include "server/connection_gate.h"
#include "server/handlers.h"
#include "server/host_policy.h"
#include "server/http_server.h"
#include "server/server_stats.h"
#include "server/wrong_tokens.h"

namespace reprise::server {

struct ServerCore {
  ServerCore(Broker& a_broker, HttpServerOptions an_options, HostPolicy a_host_policy)
      : broker(a_broker),
        options(std::move(an_options)),
        tokens(options.tokens),
        host_policy(std::move(a_host_policy)),
        api{broker,
            stats,
            broker.now(),
            options.webhook_stats,
            options.beanstalk_stats,
            options.workers,
            options.ingest_routes} {}

  Broker& broker;
  const HttpServerOptions options;
  const AccessTokens tokens;
  WrongTokens wrong_tokens;
  const HostPolicy host_policy;
  ServerStats stats;
  Api api;
  ConnectionGate gate;
};

}  // namespace reprise::server
