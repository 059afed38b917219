// LiveServer: a broker on memory behind a real HTTP server, on a port of its own.
// Threads: the server's and the broker's own; all methods from any thread.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "broker/broker.h"
#include "server/http_server.h"
#include "storage/memory/memory_storage.h"

namespace reprise::test {

class LiveServer {
 public:
  LiveServer()
      : storage_(storage::make_memory_storage()),
        broker_(*Broker::open(*storage_, clock_, random_, {})) {
    server::HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    auto started = server::HttpServer::start(*broker_, std::move(options));
    EXPECT_TRUE(started) << started.error().detail;
    if (started) server_ = std::move(*started);
  }

  std::string url(const std::string& target) const {
    return "http://" + server_->address() + target;
  }

  // Claims what is in the queue now, and gives the payloads in their order.
  std::vector<std::string> take_payloads(const QueueName& queue) {
    std::vector<std::string> payloads;
    while (true) {
      std::promise<Result<ClaimReply>> promise;
      broker_->claim({.queue = queue, .max = 100},
                     [&](Result<ClaimReply> reply) { promise.set_value(std::move(reply)); });
      const auto reply = promise.get_future().get();
      EXPECT_TRUE(reply) << reply.error().detail;
      if (!reply || reply->jobs.empty()) return payloads;
      for (const ClaimedJob& job : reply->jobs) payloads.push_back(job.record->payload);
    }
  }

 private:
  SteadyWallClock clock_;
  SeededRandom random_{7};
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<server::HttpServer> server_;
};

}  // namespace reprise::test
