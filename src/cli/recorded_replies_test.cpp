// Commands against a server that gives recorded replies: what they send, and what they print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support/cli_run.h"
#include "support/webhook_receiver.h"

namespace reprise::cli {
namespace {

using test::run_cli;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kThrottle[] =
    R"({"key":"api","namespace":"default","rate":"100/s","burst":20,"tokens":20,"waiting":0,)"
    R"("updated_at":"2026-01-31T08:15:00.250Z"})";

class RecordedReplies : public ::testing::Test {
 protected:
  RecordedReplies() { setenv("REPRISE_URL", server_.url("").c_str(), 1); }
  ~RecordedReplies() override { unsetenv("REPRISE_URL"); }

  void reply_with(int status, const std::string& body) {
    server_.answer_with([=](const auto&) {
      return "HTTP/1.1 " + std::to_string(status) +
             " Whatever\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    });
  }

  // "PUT /v1/throttles/api?namespace=default"
  std::string last_request() const {
    const auto requests = server_.requests();
    if (requests.empty()) return "none";
    const std::string& head = requests.back().head;
    return head.substr(0, head.find(" HTTP/1.1\r\n"));
  }
  std::string last_body() const {
    const auto requests = server_.requests();
    return requests.empty() ? "none" : requests.back().body;
  }

  test::WebhookReceiver server_;
};

TEST_F(RecordedReplies, ThrottleSetSendsARateAndTellsWhatHolds) {
  reply_with(200, kThrottle);
  const auto ran = run_cli({"throttle", "set", "api", "100/s", "--burst", "20"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "set api: 100/s, burst 20\n");
  EXPECT_EQ(last_request(), "PUT /v1/throttles/api?namespace=default");
  EXPECT_EQ(last_body(), R"({"rate":"100/s","burst":20})");

  EXPECT_EQ(run_cli({"throttle", "set", "api", "60/1m", "-n", "billing"}).exit_code, 0);
  EXPECT_EQ(last_request(), "PUT /v1/throttles/api?namespace=billing");
  EXPECT_EQ(last_body(), R"({"rate":"60/1m"})");
  EXPECT_EQ(run_cli({"throttle", "set", "api", "100/s", "--json"}).out,
            kThrottle + std::string("\n"));
}

TEST_F(RecordedReplies, AKeyIsEncodedWhereAPathNeedsIt) {
  reply_with(200, R"({"key":"k","namespace":"default","deleted":true})");
  const std::vector<std::pair<const char*, const char*>> keys{
      {"a.b-c_d~", "a.b-c_d~"},
      {"a/b ?#%", "a%2Fb%20%3F%23%25"},
      {"é", "%C3%A9"},
      {"..", ".."},
      {".", "."},
      {"[x,y]", "%5Bx%2Cy%5D"},
      {"\xff", "%FF"},
  };
  for (const auto& [key, encoded] : keys) {
    EXPECT_EQ(run_cli({"throttle", "unset", key}).exit_code, 0) << key;
    EXPECT_EQ(last_request(),
              std::string("DELETE /v1/throttles/") + encoded + "?namespace=default");
  }
  EXPECT_EQ(run_cli({"throttle", "unset", "--", "-x"}).out, "unset -x\n");
  EXPECT_EQ(run_cli({"throttle", "unset", "a\x1b[31m"}).out, "unset a\\u001b[31m\n");
}

TEST_F(RecordedReplies, ThrottleListIsATable) {
  reply_with(200, R"({"throttles":[)" + std::string(kThrottle) +
                      R"(,{"key":"b\t","rate":"1/2s","burst":1,"tokens":0.46,"waiting":3,)"
                      R"("updated_at":"2026-01-31T08:16:00.000Z"}]})");
  EXPECT_EQ(run_cli({"throttle", "list"}).out,
            "KEY\tRATE\tBURST\tTOKENS\tWAITING\tUPDATED\n"
            "api\t100/s\t20\t20.0\t0\t2026-01-31T08:15:00.250Z\n"
            "b\\t\t1/2s\t1\t0.5\t3\t2026-01-31T08:16:00.000Z\n");
  EXPECT_EQ(last_request(), "GET /v1/throttles?namespace=default");
  EXPECT_THAT(run_cli({"throttle", "list", "--no-header"}).out, StartsWith("api\t"));
  EXPECT_THAT(run_cli({"throttle", "list", "--json"}).out,
              StartsWith(R"({"throttles":[{"key":"api")"));

  reply_with(200, R"({"throttles":[]})");
  EXPECT_EQ(run_cli({"throttle", "list"}).out, "KEY\tRATE\tBURST\tTOKENS\tWAITING\tUPDATED\n");
}

TEST_F(RecordedReplies, AThrottleThatIsNotThereIsExitOne) {
  reply_with(404, R"({"error":{"code":"throttle_not_found","message":"no throttle 'api'"}})");
  const auto ran = run_cli({"throttle", "unset", "api"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, HasSubstr("(throttle_not_found)"));
}

TEST_F(RecordedReplies, PushSendsWhatSchedulingLooksAt) {
  reply_with(200, R"({"results":[{"index":0,"status":"pushed","id":"7ZK3M9QAX2B4C"}]})");
  const auto ran =
      run_cli({"queue", "push", "--throttle-key", "api", "orders", "1", "--fairness-key", "acme",
               "--weight", "3", "--throttle-key", "[x,y]", "--throttle-key", ""});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(last_body(), R"({"jobs":[{"payload":1,"fairness_key":"acme","weight":3,)"
                         R"("throttle_keys":["api","[x,y]",""]}]})");
}

TEST_F(RecordedReplies, EventsOfABreakerHaveNoId) {
  reply_with(200, R"(id: 7
event: queue:breaker_open
data: {"type":"queue:breaker_open","at":"2026-01-31T08:15:00.250Z","namespace":"default","queue":"orders","open_until":"2026-01-31T08:15:30.250Z"}

id: 8
event: queue:breaker_trial
data: {"type":"queue:breaker_trial","at":"2026-01-31T08:15:30.250Z","namespace":"default","queue":"orders"}

)");
  const auto ran = run_cli({"events", "--type", "breaker_open,breaker_trial"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "AT\tTYPE\tNAMESPACE\tQUEUE\tID\tDETAIL\n"
            "2026-01-31T08:15:00.250Z\tqueue:breaker_open\tdefault\torders\t-\t"
            "open_until=2026-01-31T08:15:30.250Z\n"
            "2026-01-31T08:15:30.250Z\tqueue:breaker_trial\tdefault\torders\t-\t-\n");
  EXPECT_EQ(last_request(), "GET /v1/events?type=queue%3Abreaker_open%2Cqueue%3Abreaker_trial");
}

TEST_F(RecordedReplies, QueueShowTellsKeysAndBreaker) {
  reply_with(200, R"({"name":"orders","namespace":"default","paused":false,)"
                  R"("config":{"concurrency":50,"breaker":{"min":20}},)"
                  R"("breaker":{"state":"trial","canaries_out":1},)"
                  R"("stats":{"pending":2,"keys":{"active":1,"top":[{"key":"acme","share":1}]}}})");
  const auto ran = run_cli({"queue", "show", "orders"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("\nstats.keys.active\t1\nstats.keys.top.0.key\tacme\n"));
  EXPECT_THAT(ran.out, HasSubstr("\nconfig.concurrency\t50\nconfig.breaker.min\t20\n"));
  EXPECT_THAT(ran.out, HasSubstr("\nbreaker.state\ttrial\nbreaker.canaries_out\t1\n"));
}

}  // namespace
}  // namespace reprise::cli
