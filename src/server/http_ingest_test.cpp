// Ingest over HTTP: which queues are asked for what, and what their answers make together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/worker_http_fixture.h"

namespace reprise::server {
namespace {

using std::chrono::hours;
using test::HttpReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kRoute = "/api/events/ingest";

std::string event(std::string_view id, std::string_view type = "order.created") {
  return fmt::format(R"({{"id":"{}","type":"{}"}})", id, type);
}
std::string pushed(std::string_view id, std::string_view queue, bool create) {
  return fmt::format(
      R"({{"id":"{}","type":"reprise.push","data":{{"queue":"{}","create":{},"job":{{}}}}}})", id,
      queue, create);
}

class HttpIngest : public test::WorkerHttpTest {
 protected:
  void SetUp() override { start_with({}); }

  void start_with(const std::vector<std::string>& routes) {
    HttpServerOptions options;
    options.workers = &service;
    options.ingest_routes = *IngestRoutes::parse(routes);
    start(std::move(options));
  }

  HttpReply ingest(const std::vector<std::string>& events, std::string_view query = "") {
    return ask("POST", fmt::format("{}{}", kRoute, query),
               fmt::format(R"({{"events":[{}]}})", fmt::join(events, ",")));
  }

  // "ns/queue: key key", of each push that the broker was asked for.
  std::vector<std::string> pushes() {
    return broker.with_lock([](auto& asked) {
      std::vector<std::string> told;
      for (const PushCommand& push : asked.pushes) {
        std::vector<std::string> keys;
        for (const auto& job : push.jobs) keys.push_back(job->key);
        told.push_back(fmt::format("{}/{}{}: {}", push.queue.ns, push.queue.name,
                                   push.create ? "" : "!", fmt::join(keys, " ")));
      }
      return told;
    });
  }

  std::string statuses(const HttpReply& reply) {
    std::string text;
    const Json json = json_of(reply);
    const Json::Array* results = json["results"].array();
    if (results == nullptr) return "no results";
    for (std::size_t i = 0; i < results->size(); ++i) {
      EXPECT_EQ((*results)[i]["index"].integer(), static_cast<std::int64_t>(i));
      text += (text.empty() ? "" : " ") + (*results)[i]["status"].string_or("?");
    }
    return text;
  }

  // From now on this queue answers so.
  void queue_answers(const std::string& queue, Errc code) {
    broker.with_lock([&](auto&) {
      broker.on_push = [this, queue, code, before = broker.on_push](const PushCommand& command) {
        if (command.queue.name != queue) return before(command);
        return Result<PushReply>(Error{code, "by order of the test"});
      };
    });
  }
};

TEST_F(HttpIngest, EventsBecomeJobsOfOnePush) {
  const HttpReply reply = ingest({event("a"), event("b")});
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(reply.body, R"({"ingested":2,"duplicates":0,"rejected":0,"deferred":0,"results":[)"
                        R"({"index":0,"status":"accepted"},{"index":1,"status":"accepted"}]})");
  EXPECT_THAT(pushes(), ElementsAre("default/events: a b"));
  broker.with_lock([](auto& asked) {
    const NewJob& job = *asked.pushes.front().jobs.front();
    EXPECT_EQ(job.payload, event("a"));
    EXPECT_EQ(job.least_key_window, hours(24));
    EXPECT_THAT(job.headers, ElementsAre(Headers::value_type{"event-type", "order.created"}));
  });
}

TEST_F(HttpIngest, TheRequestNamesQueueAndNamespace) {
  ingest({event("a")}, "?queue=orders&namespace=shop");
  EXPECT_THAT(pushes(), ElementsAre("shop/orders: a"));
}

TEST_F(HttpIngest, BadParametersAreRefused) {
  EXPECT_EQ(code_of(ingest({event("a")}, "?queue=.q")), "invalid_name");
  EXPECT_EQ(code_of(ingest({event("a")}, "?queue=")), "invalid_name");
  EXPECT_EQ(code_of(ingest({event("a")}, "?namespace=*")), "invalid_name");
  EXPECT_EQ(code_of(ingest({event("a")}, "?queu=q")), "unknown_field");
  EXPECT_EQ(code_of(ingest({event("a")}, "?queue=q&queue=r")), "invalid_request");
  EXPECT_TRUE(pushes().empty());
}

TEST_F(HttpIngest, RoutesDecideByTypeUnlessTheRequestDoes) {
  start_with({"order.*=orders", "order.refund=refunds"});
  ingest({event("a", "order.created"), event("b", "order.refund"), event("c", "other"),
          event("d", "order.paid")},
         "?namespace=shop");
  EXPECT_THAT(pushes(), ElementsAre("shop/orders: a d", "shop/refunds: b", "shop/events: c"));
  ingest({event("a", "order.created")}, "?queue=mine");
  EXPECT_EQ(pushes().back(), "default/mine: a");
}

TEST_F(HttpIngest, APushSaysItselfWhereItGoes) {
  start_with({"*=all"});
  ingest({pushed("a", "orders", true)}, "?queue=mine&namespace=shop");
  EXPECT_THAT(pushes(), ElementsAre("default/orders: a"));
}

TEST_F(HttpIngest, EventsOfAQueueKeepTheirOrder) {
  ingest({pushed("a", "q", false), pushed("b", "q", false), pushed("c", "q", true),
          pushed("d", "q", false), pushed("e", "q", true), pushed("f", "r", false)});
  EXPECT_THAT(pushes(), ElementsAre("default/q!: a b", "default/q: c d e", "default/r!: f"));
}

TEST_F(HttpIngest, ResultsKeepTheOrderOfTheRequest) {
  queue_answers("missing", Errc::queue_not_found);
  const HttpReply reply = ingest({event("a"), pushed("b", "missing", false), "1", event("c"),
                                  pushed("d", "other", false), R"({"id":"e"})"});
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(statuses(reply), "accepted rejected rejected accepted accepted rejected");
  EXPECT_THAT(reply.body, HasSubstr(R"("error":"by order of the test","code":"queue_not_found")"));
}

TEST_F(HttpIngest, WhenAllAreRefusedNoQueueIsAskedOrMade) {
  const HttpReply reply = ingest({"1", "{}"});
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(statuses(reply), "rejected rejected");
  EXPECT_TRUE(pushes().empty());
}

TEST_F(HttpIngest, AnExternalQueueTakesNoEvents) {
  service.external.insert({"default", "outside"});
  const HttpReply reply = ingest({pushed("a", "outside", true), event("b")});
  EXPECT_EQ(statuses(reply), "rejected accepted");
  EXPECT_THAT(reply.body, HasSubstr(R"("code":"external_queue")"));
  EXPECT_THAT(pushes(), ElementsAre("default/events: b"));
}

TEST_F(HttpIngest, PassingTroubleOfOneQueueDefersItsEvents) {
  for (const Errc code : {Errc::overloaded, Errc::shutting_down, Errc::io}) {
    queue_answers("q", code);
    const HttpReply reply = ingest({event("a"), pushed("b", "q", false)});
    EXPECT_EQ(reply.status, 202);
    EXPECT_EQ(statuses(reply), "accepted deferred");
  }
}

TEST_F(HttpIngest, PassingTroubleOfAllIsTheReply) {
  queue_answers("events", Errc::overloaded);
  const HttpReply reply = ingest({event("a"), "1"});
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(code_of(reply), "overloaded");
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
}

TEST_F(HttpIngest, ItsReplyComesWhenTheLastQueueHasAnswered) {
  broker.hold_replies();
  test::HttpProbe probe(address());
  probe.send(test::http_request(
      "POST", kRoute, fmt::format(R"({{"events":[{},{}]}})", event("a"), pushed("b", "q", false))));
  ASSERT_TRUE(broker.wait_for([](auto& asked) { return asked.pushes.size() == 2; }));
  broker.let_go();
  const auto reply = probe.reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 202);
}

TEST_F(HttpIngest, EventsAreCounted) {
  queue_answers("full", Errc::queue_full);
  ingest({event("a"), event("b"), "1", pushed("c", "full", false)});
  ingest({pushed("c", "full", false)});
  const std::string metrics = ask("GET", "/metrics").body;
  for (const auto& [result, count] : std::map<std::string, int>{
           {"accepted", 2}, {"duplicate", 0}, {"rejected", 1}, {"deferred", 2}}) {
    EXPECT_THAT(metrics,
                HasSubstr(fmt::format("reprise_ingested_events_total{{result=\"{}\"}} {}\n", result,
                                      count)));
  }
}

TEST_F(HttpIngest, OnlyAPostIsUnderstood) {
  const HttpReply reply = ask("GET", kRoute);
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.headers.at("allow"), "POST");
}

}  // namespace
}  // namespace reprise::server
