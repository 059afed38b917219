#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/limits.h"
#include "server/handlers.h"
#include "server/ingest_body.h"
#include "server/ingest_reply.h"

namespace reprise::server {
namespace {

// The results of one request while its queues answer, in any order and on any thread: each answer
// writes its own places only, and the last one hands all of them on.
class IngestJoin {
 public:
  IngestJoin(IngestResults results, std::size_t answers, Done<IngestResults> done)
      : results_(std::move(results)), unanswered_(answers), done_(std::move(done)) {}

  void answer(const std::vector<std::size_t>& places, Result<PushReply> reply) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      results_[places[i]] = reply ? std::move(reply->results[i]) : Result<PushedJob>(reply.error());
    }
    if (unanswered_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_(std::move(results_));
  }

 private:
  IngestResults results_;
  std::atomic<std::size_t> unanswered_;
  Done<IngestResults> done_;
};

// What goes to a queue, and where its events stand in the request.
struct Part {
  PushCommand push;
  std::vector<std::size_t> places;
};

// The events of a queue keep their order: one that must not make the queue joins those before it
// that may, the other way round it comes after them.
Part& part_of(std::vector<Part>& parts, QueueName queue, bool create) {
  const auto latest =
      std::ranges::find(parts.rbegin(), parts.rend(), queue,
                        [](const Part& part) -> const QueueName& { return part.push.queue; });
  if (latest != parts.rend() && (latest->push.create || !create)) return *latest;
  parts.push_back({.push = {.queue = std::move(queue), .create = create}});
  return parts.back();
}

// The parameters `namespace` and `queue`, checked.
struct Destination {
  std::string ns{kDefaultNamespace};
  std::optional<std::string> queue;
};

Result<Destination> destination_of(Request& request) {
  Destination destination;
  if (auto ns = request.query.take("namespace")) destination.ns = std::move(*ns);
  destination.queue = request.query.take("queue");
  REPRISE_TRY(check_name("namespace", destination.ns));
  if (destination.queue) REPRISE_TRY(check_name("queue", *destination.queue));
  REPRISE_TRY(request.query.finish());
  return destination;
}

QueueName queue_of(IngestEvent& event, const Destination& destination, const IngestRoutes& routes) {
  if (event.queue) return std::move(*event.queue);
  if (destination.queue) return {destination.ns, *destination.queue};
  return {destination.ns, std::string(routes.queue_of(event.type))};
}

}  // namespace

Status ingest_events(Api& api, Request& request, const Exchange& exchange) {
  const auto destination = destination_of(request);
  if (!destination) return destination.error();
  auto events = parse_ingest_body(request.body, api.broker.limits(), api.broker.now());
  if (!events) return events.error();

  IngestResults results(events->size());
  std::vector<Part> parts;
  for (std::size_t i = 0; i < events->size(); ++i) {
    Result<IngestEvent>& event = (*events)[i];
    if (!event) {
      results[i] = event.error();
      continue;
    }
    Part& part = part_of(parts, queue_of(*event, *destination, api.ingest_routes), event->create);
    part.push.jobs.emplace_back(std::move(event->job));
    part.places.push_back(i);
  }

  // One answer more than there are parts: when nothing is left to ask, there is still a reply.
  const auto join =
      std::make_shared<IngestJoin>(std::move(results), parts.size() + 1,
                                   exchange.then<IngestResults>([&api](const IngestResults& all) {
                                     api.stats.count_ingested(count_results(all));
                                     return ingest_response(all);
                                   }));
  for (Part& part : parts) {
    if (const Status stored = expect_stored(api, part.push.queue); !stored) {
      join->answer(part.places, stored.error());
      continue;
    }
    api.broker.push(std::move(part.push),
                    [join, places = std::move(part.places)](Result<PushReply> reply) mutable {
                      join->answer(places, std::move(reply));
                    });
  }
  join->answer({}, PushReply{});
  return ok();
}

}  // namespace reprise::server
