// Consumer: one connection that claims jobs and ends them, again and again.
// It checks each payload, and that no job comes twice: leases outlive the run, so a second delivery
// would break the server's promise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "claim_reply.h"
#include "http_connection.h"
#include "measurement.h"
#include "payload_source.h"
#include "queue_requests.h"

namespace reprise::bench {

// Which jobs have been delivered, over all consumers.
class Deliveries {
 public:
  // Throws LoadError when this serial was delivered before.
  void add(std::uint64_t serial);

 private:
  std::vector<bool> seen_;
};

// What becomes of a claimed job: finished, or failed for good with an error of its kind.
enum class Ending { ack, fail };

struct ConsumerContext {
  const QueueRequests& requests;
  const PayloadSource& payloads;
  Measurement& measurement;
  Deliveries& deliveries;
  Ending ending = Ending::ack;
};

class Consumer {
 public:
  explicit Consumer(const ConsumerContext& context) : context_(context) {}

  void claim(HttpConnection& connection, std::size_t max, std::chrono::seconds wait, TimePoint now);

  // What a reply meant. After `claimed` the ack or fail is already on its way; after `empty` and
  // `ended` the connection is free.
  enum class Step { claimed, empty, ended };
  struct Progress {
    Step step;
    std::size_t jobs;     // claimed or ended
    Nanoseconds latency;  // of the request that was answered
  };
  Progress on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now);

 private:
  Progress on_claim_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now);

  ConsumerContext context_;
  std::size_t ending_ = 0;  // jobs in the ack or fail under way; 0: a claim is under way
};

}  // namespace reprise::bench
