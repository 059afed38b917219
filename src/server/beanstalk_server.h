// BeanstalkServer: the beanstalk protocol (docs/beanstalk.md) over one broker.
//
// One thread serves all connections: a connection costs it little beyond its system calls, and what
// a client sends ahead is read, applied and answered together. Replies come from the broker's
// threads through one mailbox, so that a commit that answers many connections wakes it once.
//
// Invariants: nothing is answered before the broker has; replies of a connection leave in the order
// of its commands; the session of a connection that is gone is closed at once.
// Threads: start() and stop() from one thread; address() and stats() from any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "broker/broker.h"
#include "server/beanstalk_stats.h"

namespace reprise::server {

struct BeanstalkServerOptions {
  std::string listen;   // as HttpServerOptions::listen; empty: there is none
  bool remote = false;  // addresses beyond loopback are allowed
  std::uint64_t max_connections = 10000;
};

class BeanstalkServer {
 public:
  // Listens and serves from then on. The broker must outlive the server. Errors:
  // Errc::invalid_field for an address that cannot be used so (not loopback, and not `remote`),
  // Errc::io when listening fails.
  static Result<std::unique_ptr<BeanstalkServer>> start(Broker& broker,
                                                        BeanstalkServerOptions options);
  ~BeanstalkServer();  // stop() without grace

  BeanstalkServer(const BeanstalkServer&) = delete;
  BeanstalkServer& operator=(const BeanstalkServer&) = delete;

  // Where it really listens.
  std::string address() const;
  BeanstalkStats stats() const;

  // Stops accepting and refuses puts; connections close once all that they asked is answered, and
  // after `grace` at the latest. A reserve that waits is not waited for. Call it before
  // broker.stop(). Idempotent.
  void stop(Duration grace);

 private:
  class Impl;
  explicit BeanstalkServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::server
