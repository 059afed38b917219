// Trying hooks over HTTP: what is read, what is refused, and what is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using test::HttpReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::string_view kTest = "/v1/queues/orders/hooks/test";
constexpr std::string_view kReplay = "/v1/queues/orders/hooks/replay";
constexpr std::string_view kVersion = "3f9a1c0b22d4";
constexpr std::size_t kMaxScript = 65536;

// The body of a test of the queue's own hook.
std::string samples_of(std::string_view hook, std::string_view samples) {
  return R"({")" + std::string(hook) + R"(":null,"samples":)" + std::string(samples) + "}";
}

std::string many_samples(std::size_t count) {
  std::string list = "[";
  for (std::size_t i = 0; i < count; ++i) list += i == 0 ? "{}" : ",{}";
  return list + "]";
}

class HttpHooks : public test::HttpServerTest {
 protected:
  void SetUp() override { start(); }

  // The code of a refusal that never came to the broker, whose message has `named` in it.
  std::string refused(std::string_view target, std::string_view body, std::string_view named = {}) {
    const HttpReply reply = ask("POST", target, body);
    const std::string shown(body.substr(0, 200));
    EXPECT_GE(reply.status, 400) << target << " " << shown;
    const Json json = json_of(reply);
    EXPECT_THAT(json["error"]["message"].string_or(""), HasSubstr(std::string(named))) << shown;
    broker.with_lock([&](auto& asked) {
      EXPECT_EQ(asked.hook_trials.size() + asked.hook_replays.size(), 0U) << shown;
    });
    return json["error"]["code"].string_or("");
  }

  // The only message of a test of the queue's own hook with one sample.
  HookMessage message_of(std::string_view hook, std::string_view sample) {
    broker.hook_trial_reply = HookTrialReply{};
    const HttpReply reply = ask("POST", kTest, samples_of(hook, "[" + std::string(sample) + "]"));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return broker.with_lock([](auto& asked) {
      const bool asked_once =
          !asked.hook_trials.empty() && asked.hook_trials.back().messages.size() == 1;
      EXPECT_TRUE(asked_once);
      return asked_once ? asked.hook_trials.back().messages.front() : HookMessage{};
    });
  }
  HookReplayRequest last_replay() {
    return broker.with_lock([](auto& asked) { return asked.hook_replays.back(); });
  }
};

// --- Tests: what is asked.

TEST_F(HttpHooks, AScriptIsTriedAgainstSamples) {
  const HttpReply reply =
      ask("POST", "/v1/queues/orders/hooks/test?namespace=shop",
          R"({"on_failure":"function on_failure(msg) end","samples":[{},{"error":"x"}]})");
  EXPECT_EQ(reply.status, 200);
  broker.with_lock([](auto& asked) {
    const HookTrialRequest& trial = asked.hook_trials.at(0);
    EXPECT_EQ(trial.queue, (QueueName{"shop", "orders"}));
    EXPECT_EQ(trial.hook, HookKind::on_failure);
    EXPECT_EQ(trial.source, "function on_failure(msg) end");
    EXPECT_EQ(trial.messages.size(), 2U);
    EXPECT_EQ(trial.messages.at(1).error, "x");
  });
}

TEST_F(HttpHooks, NullStandsForTheScriptOfTheQueue) {
  EXPECT_EQ(ask("POST", kTest, R"({"on_failure":null,"samples":[{}]})").status, 200);
  EXPECT_EQ(ask("POST", kTest, R"({"on_enqueue":null,"samples":[{}]})").status, 200);
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.hook_trials.at(0).hook, HookKind::on_failure);
    EXPECT_EQ(asked.hook_trials.at(0).source, std::nullopt);
    EXPECT_EQ(asked.hook_trials.at(1).hook, HookKind::on_enqueue);
    EXPECT_EQ(asked.hook_trials.at(1).source, std::nullopt);
  });
}

TEST_F(HttpHooks, ASampleOfAFailureHasAllThatAHookIsTold) {
  const HookMessage message = message_of("on_failure", R"({
      "payload":{"id": 1, "tags": ["a"]}, "headers":{"tenant":"a","plan":"gold"},
      "id":"7ZK3M9QAX2B4C", "error":"timeout", "error_type":"Net", "attempts":4294967295,
      "failures":3, "first_attempt_at":1769860800250})");
  EXPECT_EQ(message.job->payload, R"({"id":1,"tags":["a"]})");
  EXPECT_EQ(message.job->payload_kind, PayloadKind::json);
  EXPECT_THAT(message.job->headers, ElementsAre(Pair("tenant", "a"), Pair("plan", "gold")));
  EXPECT_EQ(message.id, "7ZK3M9QAX2B4C");
  EXPECT_EQ(message.error, "timeout");
  EXPECT_EQ(message.error_type, "Net");
  EXPECT_EQ(message.attempts, 4294967295U);
  EXPECT_EQ(message.failures, 3U);
  EXPECT_EQ(message.first_attempt_at, Timestamp(1769860800250ms));
}

TEST_F(HttpHooks, AllOfASampleOfAFailureIsOptional) {
  for (const char* sample :
       {"{}", R"({"headers":null,"payload":null,"payload_base64":null,"id":null,"error":null,
                  "error_type":null,"attempts":null,"failures":null,"first_attempt_at":null})"}) {
    const HookMessage message = message_of("on_failure", sample);
    EXPECT_EQ(message.job->payload, "null");
    EXPECT_THAT(message.job->headers, IsEmpty());
    EXPECT_EQ(message.id, "");
    EXPECT_EQ(message.error, "");
    EXPECT_EQ(message.error_type, "");
    EXPECT_EQ(message.attempts, 1U);
    EXPECT_EQ(message.failures, 1U);
    EXPECT_EQ(message.first_attempt_at, Timestamp{});
  }
}

TEST_F(HttpHooks, ASampleOfAPushHasAllThatAHookIsTold) {
  const HookMessage message = message_of("on_enqueue", R"({
      "payload":[1], "headers":{"tenant":"a"}, "priority":7, "fairness_key":"acme",
      "weight":1000, "throttle_keys":["api","customer:7"]})");
  EXPECT_EQ(message.job->payload, "[1]");
  EXPECT_THAT(message.job->headers, ElementsAre(Pair("tenant", "a")));
  EXPECT_EQ(message.job->priority, 7U);
  EXPECT_EQ(
      message.job->scheduling,
      (Scheduling{.fairness_key = "acme", .weight = 1000, .throttle_keys = {"api", "customer:7"}}));
}

TEST_F(HttpHooks, AllOfASampleOfAPushIsOptional) {
  for (const char* sample :
       {"{}", R"({"priority":null,"fairness_key":null,"weight":null,"throttle_keys":null})"}) {
    const HookMessage message = message_of("on_enqueue", sample);
    EXPECT_EQ(message.job->payload, "null");
    EXPECT_EQ(message.job->priority, kDefaultPriority);
    EXPECT_EQ(message.job->scheduling, Scheduling{});
  }
}

TEST_F(HttpHooks, APayloadMayBeBytes) {
  const HookMessage message = message_of("on_failure", R"({"payload_base64":"AAE="})");
  EXPECT_EQ(message.job->payload, std::string("\0\x01", 2));
  EXPECT_EQ(message.job->payload_kind, PayloadKind::bytes);
}

TEST_F(HttpHooks, AsMuchAsIsAllowedIsTaken) {
  const std::string source(kMaxScript, ' ');
  EXPECT_EQ(ask("POST", kTest,
                R"({"on_enqueue":")" + source + R"(","samples":)" + many_samples(1000) + "}")
                .status,
            200);
  broker.with_lock([&](auto& asked) {
    EXPECT_EQ(asked.hook_trials.at(0).source, source);
    EXPECT_EQ(asked.hook_trials.at(0).messages.size(), 1000U);
  });
  const std::string name(200, 'k');
  std::string names = "\"" + name + "\"";
  for (int i = 1; i < 16; ++i) names += ",\"" + std::to_string(100 + i) + name.substr(3) + "\"";
  const HookMessage message = message_of(
      "on_enqueue", R"({"fairness_key":")" + name + R"(","throttle_keys":[)" + names + "]}");
  EXPECT_EQ(message.job->scheduling.fairness_key, name);
  EXPECT_EQ(message.job->scheduling.throttle_keys.size(), 16U);
  broker.limits_in_force.max_payload_bytes = 10;
  EXPECT_EQ(message_of("on_failure", R"({"payload":"12345678"})").job->payload.size(), 10U);
  EXPECT_EQ(message_of("on_failure", R"({"first_attempt_at":253402300799999})").first_attempt_at,
            Timestamp(253402300799999ms));
}

// --- Tests: what is refused.

TEST_F(HttpHooks, ExactlyOneHookIsTried) {
  EXPECT_EQ(refused(kTest, R"({"samples":[{}]})", "on_failure or on_enqueue"), "invalid_request");
  for (const char* both : {R"({"on_failure":"a","on_enqueue":"b","samples":[{}]})",
                           R"({"on_failure":null,"on_enqueue":"b","samples":[{}]})",
                           R"({"on_failure":"a","on_enqueue":null,"samples":[{}]})",
                           R"({"on_failure":null,"on_enqueue":null,"samples":[{}]})"}) {
    EXPECT_EQ(refused(kTest, both, "on_enqueue: goes without on_failure"), "invalid_request")
        << both;
  }
}

TEST_F(HttpHooks, AScriptIsTextOfABoundedSize) {
  const std::string large(kMaxScript + 1, ' ');
  for (const std::string hook : {"on_failure", "on_enqueue"}) {
    const auto body = [&](const std::string& source) {
      return R"({")" + hook + R"(":)" + source + R"(,"samples":[{}]})";
    };
    EXPECT_EQ(refused(kTest, body(R"("")"), hook + ": is empty"), "invalid_script");
    EXPECT_EQ(refused(kTest, body("7"), hook + ":"), "invalid_request");
    EXPECT_EQ(refused(kTest, body("{}"), hook + ":"), "invalid_request");
    EXPECT_EQ(refused(kTest, body("\"" + large + "\""), hook + ": the script has 65537 bytes"),
              "script_too_large");
  }
  EXPECT_EQ(ask("POST", kTest, R"({"on_failure":")" + large + R"(","samples":[{}]})").status, 413);
}

TEST_F(HttpHooks, SamplesAreAListOfOneToAThousand) {
  EXPECT_EQ(refused(kTest, R"({"on_failure":"a"})", "samples: is missing"), "invalid_request");
  for (const char* samples : {"{}", "7", "null", R"("x")"}) {
    EXPECT_EQ(refused(kTest, samples_of("on_failure", samples), "samples: expected an array"),
              "invalid_request")
        << samples;
  }
  EXPECT_EQ(refused(kTest, samples_of("on_failure", "[]"), "samples: give 1 to 1000, not 0"),
            "invalid_field");
  EXPECT_EQ(refused(kTest, samples_of("on_failure", many_samples(1001)),
                    "samples: give 1 to 1000, not 1001"),
            "invalid_field");
  for (const char* sample : {"7", "null", "[]"}) {
    EXPECT_EQ(refused(kTest, samples_of("on_failure", "[{}," + std::string(sample) + "]"),
                      "samples[1]: expected an object"),
              "invalid_request")
        << sample;
  }
}

TEST_F(HttpHooks, ARefusalNamesTheSampleAndItsField) {
  struct Case {
    const char* hook;
    const char* field;
    std::string value;
    const char* code;
  };
  const std::string long_name = "\"" + std::string(201, 'k') + "\"";
  std::string many_names = "[\"a\"";
  for (int i = 1; i < 17; ++i) many_names += ",\"a\"";
  many_names += "]";
  const std::vector<Case> cases = {
      {"on_failure", "payload_base64", "7", "invalid_request"},
      {"on_failure", "payload_base64", R"("?")", "invalid_field"},
      {"on_failure", "headers", "[]", "invalid_request"},
      {"on_failure", "headers", R"({"tenant":1})", "invalid_request"},
      {"on_failure", "id", "7", "invalid_request"},
      {"on_failure", "error", "7", "invalid_request"},
      {"on_failure", "error_type", "{}", "invalid_request"},
      {"on_failure", "attempts", "-1", "invalid_field"},
      {"on_failure", "attempts", "1.5", "invalid_field"},
      {"on_failure", "attempts", "4294967296", "invalid_field"},
      {"on_failure", "attempts", R"("1")", "invalid_request"},
      {"on_failure", "failures", "-1", "invalid_field"},
      {"on_failure", "failures", "true", "invalid_request"},
      {"on_failure", "first_attempt_at", "-1", "invalid_field"},
      {"on_failure", "first_attempt_at", "253402300800000", "invalid_field"},
      {"on_failure", "first_attempt_at", R"("2026-01-31T12:00:00.000Z")", "invalid_request"},
      {"on_enqueue", "priority", "-1", "invalid_field"},
      {"on_enqueue", "priority", "4294967296", "invalid_field"},
      {"on_enqueue", "priority", R"("high")", "invalid_request"},
      {"on_enqueue", "fairness_key", R"("")", "invalid_field"},
      {"on_enqueue", "fairness_key", long_name, "invalid_field"},
      {"on_enqueue", "fairness_key", "7", "invalid_request"},
      {"on_enqueue", "weight", "0", "invalid_field"},
      {"on_enqueue", "weight", "1001", "invalid_field"},
      {"on_enqueue", "weight", "1.5", "invalid_field"},
      {"on_enqueue", "weight", R"("1")", "invalid_request"},
      {"on_enqueue", "throttle_keys", many_names, "invalid_field"},
      {"on_enqueue", "throttle_keys", R"(["a",""])", "invalid_field"},
      {"on_enqueue", "throttle_keys", "[" + long_name + "]", "invalid_field"},
      {"on_enqueue", "throttle_keys", R"("a")", "invalid_request"},
      {"on_enqueue", "throttle_keys", R"(["a",7])", "invalid_request"},
  };
  for (const Case& each : cases) {
    const std::string sample = R"({")" + std::string(each.field) + R"(":)" + each.value + "}";
    EXPECT_EQ(refused(kTest, samples_of(each.hook, "[{}," + sample + "]"),
                      std::string("samples[1].") + each.field + ":"),
              each.code)
        << sample;
  }
}

TEST_F(HttpHooks, EachHookHasSamplesOfItsOwn) {
  for (const char* field : {"priority", "fairness_key", "weight", "throttle_keys"}) {
    EXPECT_EQ(refused(kTest, samples_of("on_failure", R"([{")" + std::string(field) + R"(":1}])"),
                      std::string("samples[0].") + field),
              "unknown_field")
        << field;
  }
  for (const char* field :
       {"id", "error", "error_type", "attempts", "failures", "first_attempt_at"}) {
    EXPECT_EQ(refused(kTest, samples_of("on_enqueue", R"([{")" + std::string(field) + R"(":1}])"),
                      std::string("samples[0].") + field),
              "unknown_field")
        << field;
  }
}

TEST_F(HttpHooks, APayloadIsGivenOnceAndIsBounded) {
  EXPECT_EQ(refused(kTest, samples_of("on_failure", R"([{"payload":1,"payload_base64":"AAE="}])"),
                    "samples[0].payload_base64: goes without payload"),
            "invalid_request");
  broker.limits_in_force.max_payload_bytes = 10;
  const HttpReply reply =
      ask("POST", kTest, samples_of("on_failure", R"([{"payload":"123456789"}])"));
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(refused(kTest, samples_of("on_failure", R"([{},{"payload":"123456789"}])"),
                    "samples[1].payload: is beyond"),
            "payload_too_large");
  EXPECT_EQ(refused(kTest, samples_of("on_enqueue", R"([{"payload_base64":"AAAAAAAAAAAAAAA="}])"),
                    "samples[0].payload_base64: is beyond"),
            "payload_too_large");
}

TEST_F(HttpHooks, ATestTakesNothingElse) {
  EXPECT_EQ(refused(kTest, R"({"on_failure":"a","samples":[{}],"limit":1})", "limit"),
            "unknown_field");
  EXPECT_EQ(refused(kTest, R"({"on_failur":"a","samples":[{}]})", "on_failure"), "unknown_field");
  EXPECT_EQ(refused("/v1/queues/orders/hooks/test?limit=1", "", "limit"), "unknown_field");
  EXPECT_EQ(refused("/v1/queues/.x/hooks/test", ""), "invalid_name");
  EXPECT_EQ(refused("/v1/queues/orders/hooks/test?namespace=*", ""), "invalid_name");
  EXPECT_EQ(refused(kTest, "[]", "expected an object"), "invalid_request");
  EXPECT_EQ(refused(kTest, "{"), "invalid_request");
  EXPECT_EQ(refused(kTest, ""), "invalid_request");
  EXPECT_EQ(ask("GET", kTest).status, 405);
}

// --- Tests: what is answered.

TEST_F(HttpHooks, WhatOnFailureDecidedIsTold) {
  broker.hook_trial_reply = HookTrialReply{
      .version = std::string(kVersion),
      .items = {
          {.outcome = FailureVerdict{.retry = true, .delay = 1s}, .log = {}},
          {.outcome = FailureVerdict{.retry = true}, .log = {}},
          {.outcome = FailureVerdict{.retry = false, .reason = "permanent"}, .log = {"card 4", ""}},
          {.outcome = FailureVerdict{.retry = false}, .log = {}},
          {.outcome = HookFailure{.fault = HookFault::error, .message = "line 3: \"nil\""},
           .log = {"before"}}}};
  const HttpReply reply = ask("POST", kTest, samples_of("on_failure", many_samples(5)));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"hook":"on_failure","version":"3f9a1c0b22d4","results":[)"
            R"({"index":0,"status":"decided","action":"retry","delay_ms":1000,"log":[]},)"
            R"({"index":1,"status":"decided","action":"retry","delay_ms":0,"log":[]},)"
            R"({"index":2,"status":"decided","action":"dlq","reason":"permanent",)"
            R"("log":["card 4",""]},)"
            R"({"index":3,"status":"decided","action":"dlq","reason":"hook","log":[]},)"
            R"({"index":4,"status":"hook_error","fault":"error","message":"line 3: \"nil\"",)"
            R"("log":["before"]}]})");
}

TEST_F(HttpHooks, WhatOnEnqueueDecidedIsToldAsTheJobWouldHaveIt) {
  broker.hook_trial_reply = HookTrialReply{
      .version = std::string(kVersion),
      .items = {
          {.outcome = EnqueueVerdict{}, .log = {}},
          {.outcome = EnqueueVerdict{}, .log = {}},
          {.outcome = EnqueueVerdict{.fairness_key = "b",
                                     .weight = 5,
                                     .throttle_keys = std::vector<std::string>{"x", "y"}},
           .log = {}},
          {.outcome = EnqueueVerdict{.throttle_keys = std::vector<std::string>{}}, .log = {}},
          {.outcome = EnqueueVerdict{.weight = 3, .reject = "no id"}, .log = {"looked"}},
          {.outcome = HookFailure{.fault = HookFault::memory, .message = "out of it"}, .log = {}}}};
  const std::string given = R"({"fairness_key":"a","weight":2,"throttle_keys":["t"]})";
  const std::string five_given = given + "," + given + "," + given + "," + given + "," + given;
  const HttpReply reply = ask("POST", kTest, samples_of("on_enqueue", "[{}," + five_given + "]"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(
      reply.body,
      R"({"hook":"on_enqueue","version":"3f9a1c0b22d4","results":[)"
      R"({"index":0,"status":"decided","fairness_key":"default","weight":1,"throttle_keys":[],)"
      R"("log":[]},)"
      R"({"index":1,"status":"decided","fairness_key":"a","weight":2,"throttle_keys":["t"],)"
      R"("log":[]},)"
      R"({"index":2,"status":"decided","fairness_key":"b","weight":5,"throttle_keys":["x","y"],)"
      R"("log":[]},)"
      R"({"index":3,"status":"decided","fairness_key":"a","weight":2,"throttle_keys":[],)"
      R"("log":[]},)"
      R"({"index":4,"status":"decided","reject":"no id","log":["looked"]},)"
      R"({"index":5,"status":"hook_error","fault":"memory","message":"out of it","log":[]}]})");
}

TEST_F(HttpHooks, EveryFaultHasItsName) {
  for (const auto& [fault, name] : {std::pair{HookFault::error, "error"},
                                    {HookFault::timeout, "timeout"},
                                    {HookFault::memory, "memory"},
                                    {HookFault::invalid_result, "invalid_result"},
                                    {HookFault::host_lost, "host_lost"}}) {
    broker.hook_trial_reply =
        HookTrialReply{.items = {{.outcome = HookFailure{.fault = fault, .message = "m"}}}};
    const Json json = json_of(ask("POST", kTest, samples_of("on_failure", "[{}]")));
    ASSERT_EQ(json["results"].array()->size(), 1U);
    EXPECT_EQ(json["results"].array()->front()["fault"].string_or(""), name);
  }
}

TEST_F(HttpHooks, WhyNothingCouldBeTriedIsTold) {
  for (const auto& [code, status] : {std::pair{Errc::queue_not_found, 404},
                                     {Errc::invalid_script, 400},
                                     {Errc::invalid_request, 400},
                                     {Errc::hooks_unavailable, 503},
                                     {Errc::overloaded, 503}}) {
    broker.hook_trial_reply = Error{code, "line 1: why"};
    const HttpReply tested = ask("POST", kTest, samples_of("on_failure", "[{}]"));
    EXPECT_EQ(tested.status, status);
    EXPECT_EQ(tested.body, R"({"error":{"code":")" + std::string(errc_info(code).wire_name) +
                               R"(","message":"line 1: why"}})");
    broker.hook_replay_reply = Error{code, "line 1: why"};
    const HttpReply replayed = ask("POST", kReplay, "{}");
    EXPECT_EQ(replayed.status, status);
    EXPECT_EQ(replayed.body, tested.body);
  }
}

// --- Replays.

TEST_F(HttpHooks, AReplayIsOfAllTheDeadUnlessItSaysOtherwise) {
  for (const char* body :
       {"", "{}", R"({"on_failure":null,"filter":null,"limit":null})", R"({"filter":{}})"}) {
    EXPECT_EQ(ask("POST", kReplay, body).status, 200) << body;
    const HookReplayRequest replay = last_replay();
    EXPECT_EQ(replay.queue, (QueueName{"default", "orders"}));
    EXPECT_EQ(replay.source, std::nullopt);
    EXPECT_EQ(replay.filter, (JobFilter{.status = JobStatus::dead})) << body;
    EXPECT_EQ(replay.limit, 1000U);
  }
}

TEST_F(HttpHooks, AReplayTakesAScriptAFilterAndALimit) {
  EXPECT_EQ(ask("POST", "/v1/queues/orders/hooks/replay?namespace=shop",
                R"({"on_failure":"function on_failure() end","limit":10000,
                    "filter":{"status":"failed","error":"time","error_type":"Net",
                              "older_than":"7d","headers":{"tenant":"a"}}})")
                .status,
            200);
  const HookReplayRequest replay = last_replay();
  EXPECT_EQ(replay.queue, (QueueName{"shop", "orders"}));
  EXPECT_EQ(replay.source, "function on_failure() end");
  EXPECT_EQ(replay.filter, (JobFilter{.status = JobStatus::failed,
                                      .error = "time",
                                      .error_type = "Net",
                                      .older_than = 24h * 7,
                                      .headers = {{"tenant", "a"}}}));
  EXPECT_EQ(replay.limit, 10000U);
  for (const auto& [name, reason] :
       {std::pair{"hook", DeathReason::hook}, {"hook_error", DeathReason::hook_error}}) {
    EXPECT_EQ(
        ask("POST", kReplay, R"({"limit":1,"filter":{"reason":")" + std::string(name) + R"("}})")
            .status,
        200);
    EXPECT_EQ(last_replay().filter, (JobFilter{.status = JobStatus::dead, .reason = reason}));
  }
}

TEST_F(HttpHooks, AReplayRefusesWhatItDoesNotKnow) {
  for (const char* limit : {"0", "10001", "-1", "1.5"}) {
    EXPECT_EQ(refused(kReplay, R"({"limit":)" + std::string(limit) + "}", "limit:"),
              "invalid_field")
        << limit;
  }
  EXPECT_EQ(refused(kReplay, R"({"limit":"1"})", "limit:"), "invalid_request");
  EXPECT_EQ(refused(kReplay, R"({"filter":[]})", "filter:"), "invalid_request");
  EXPECT_EQ(refused(kReplay, R"({"filter":{"status":"pending"}})", "filter.status:"),
            "invalid_field");
  EXPECT_EQ(refused(kReplay, R"({"filter":{"reason":"permanent"}})", "filter.reason:"),
            "invalid_field");
  EXPECT_EQ(refused(kReplay, R"({"filter":{"lane":"retry"}})", "filter.lane"), "unknown_field");
  EXPECT_EQ(refused(kReplay, R"({"on_failure":""})", "on_failure: is empty"), "invalid_script");
  EXPECT_EQ(refused(kReplay, R"({"on_failure":7})", "on_failure:"), "invalid_request");
  EXPECT_EQ(refused(kReplay, R"({"on_failure":")" + std::string(kMaxScript + 1, ' ') + R"("})",
                    "on_failure: the script has"),
            "script_too_large");
  EXPECT_EQ(refused(kReplay, R"({"on_enqueue":null})", "on_enqueue"), "unknown_field");
  EXPECT_EQ(refused(kReplay, R"({"samples":[{}]})", "samples"), "unknown_field");
  EXPECT_EQ(refused("/v1/queues/orders/hooks/replay?limit=1", "", "limit"), "unknown_field");
  EXPECT_EQ(refused("/v1/queues/.x/hooks/replay", ""), "invalid_name");
  EXPECT_EQ(refused(kReplay, "7", "expected an object"), "invalid_request");
  EXPECT_EQ(ask("GET", kReplay).status, 405);
}

JobView job_of(Seq seq, JobState state) {
  const JobStatus status = state.status;
  return {.seq = seq,
          .status = status,
          .record = test::record_of("1"),
          .state = std::make_shared<const JobState>(std::move(state))};
}

TEST_F(HttpHooks, AReplayTellsWhatWasAndWhatWouldHaveBeen) {
  const JobState dead{.status = JobStatus::dead, .death_reason = DeathReason::max_attempts};
  const JobState dead_by_hook{.status = JobStatus::dead,
                              .death_reason = DeathReason::hook,
                              .decided_by = DecidedBy::hook,
                              .death_note = "too late",
                              .hook_version = "0123456789ab"};
  const JobState failed{.status = JobStatus::failed, .failures = 1};
  broker.hook_replay_reply = HookReplayReply{
      .version = std::string(kVersion),
      .items = {{job_of(1, dead), FailureVerdict{.retry = true, .delay = 4s}},
                {job_of(2, failed), FailureVerdict{.retry = false, .reason = "permanent"}},
                {job_of(3, dead_by_hook), FailureVerdict{.retry = false}},
                {job_of(4, dead), HookFailure{.fault = HookFault::timeout, .message = "10 ms"}}},
      .unreadable = 2,
      .truncated = true};
  const HttpReply reply = ask("POST", kReplay, "{}");
  EXPECT_EQ(reply.status, 200);
  const auto decision = [](Seq seq, std::string_view rest) {
    return R"({"id":")" + encode_job_id(seq) + R"(","was":)" + std::string(rest);
  };
  const std::string by_policy =
      R"({"status":"dead","reason":"max_attempts","decided_by":"policy"})";
  EXPECT_EQ(
      reply.body,
      R"({"hook":"on_failure","version":"3f9a1c0b22d4","examined":4,"unreadable":2,)"
      R"("truncated":true,"summary":{"retry":1,"dlq":2,"hook_error":1},"decisions":[)" +
          decision(1, by_policy) + R"(,"status":"decided","action":"retry","delay_ms":4000},)" +
          decision(2, R"({"status":"failed","reason":null,"decided_by":null})") +
          R"(,"status":"decided","action":"dlq","reason":"permanent"},)" +
          decision(3, R"({"status":"dead","reason":"too late","decided_by":"hook:0123456789ab"})") +
          R"(,"status":"decided","action":"dlq","reason":"hook"},)" + decision(4, by_policy) +
          R"(,"status":"hook_error","fault":"timeout","message":"10 ms"}]})");
}

TEST_F(HttpHooks, AReplayOfNothingIsEmpty) {
  broker.hook_replay_reply = HookReplayReply{.version = std::string(kVersion)};
  EXPECT_EQ(ask("POST", kReplay).body,
            R"({"hook":"on_failure","version":"3f9a1c0b22d4","examined":0,"unreadable":0,)"
            R"("truncated":false,"summary":{"retry":0,"dlq":0,"hook_error":0},"decisions":[]})");
}

// --- The hooks of a queue's config.

TEST_F(HttpHooks, AQueueIsMadeWithItsHooks) {
  const HttpReply reply =
      ask("PUT", "/v1/queues/orders",
          R"({"on_enqueue":"a","on_failure":"b","on_hook_error":"dlq","hook_timeout_ms":1000,
              "hook_memory_bytes":131072})");
  EXPECT_EQ(reply.status, 201);
  EXPECT_THAT(reply.body,
              HasSubstr(R"("on_enqueue":"a","on_failure":"b","on_hook_error":"dlq",)"
                        R"("hook_timeout_ms":1000,"hook_memory_bytes":131072,"vars":[],)"
                        R"("defaults":null},)"
                        R"("hooks":{})"));
  broker.with_lock([](auto& asked) {
    const QueueConfig& config = asked.puts.at(0).config;
    EXPECT_THAT(config.hooks, ElementsAre("a", "b"));
    EXPECT_EQ(config.on_hook_error, OnHookError::dlq);
    EXPECT_EQ(config.hook_timeout_ms, 1000U);
    EXPECT_EQ(config.hook_memory_bytes, 131072U);
  });
}

TEST_F(HttpHooks, NullTakesTheHooksOfAQueueAway) {
  broker.stats->queue.config.hooks = {"a", "b"};
  broker.stats->queue.config.on_hook_error = OnHookError::policy;
  broker.stats->queue.config.hook_timeout_ms = 5;
  broker.stats->queue.config.hook_memory_bytes = 131072;
  EXPECT_EQ(ask("PATCH", "/v1/queues/orders", R"({"on_enqueue":null})").status, 200);
  EXPECT_EQ(ask("PATCH", "/v1/queues/orders",
                R"({"on_failure":null,"on_hook_error":null,"hook_timeout_ms":null,
                    "hook_memory_bytes":null})")
                .status,
            200);
  broker.with_lock([](auto& asked) {
    EXPECT_THAT(asked.edited.at(0).hooks, ElementsAre("", "b"));
    EXPECT_EQ(asked.edited.at(0).on_hook_error, OnHookError::policy);
    EXPECT_THAT(asked.edited.at(1).hooks, ElementsAre("a", ""));
    EXPECT_EQ(asked.edited.at(1).on_hook_error, OnHookError::retry);
    EXPECT_EQ(asked.edited.at(1).hook_timeout_ms, std::nullopt);
    EXPECT_EQ(asked.edited.at(1).hook_memory_bytes, std::nullopt);
  });
}

TEST_F(HttpHooks, AConfigThatCannotBeIsRefused) {
  const std::string large = "\"" + std::string(kMaxScript + 1, ' ') + "\"";
  struct Case {
    const char* field;
    std::string value;
    const char* code;
  };
  const std::vector<Case> cases = {
      {"on_enqueue", R"("")", "invalid_script"},
      {"on_enqueue", large, "script_too_large"},
      {"on_failure", "7", "invalid_request"},
      {"on_failure", large, "script_too_large"},
      {"on_hook_error", R"("ignore")", "invalid_field"},
      {"on_hook_error", "true", "invalid_request"},
      {"hook_timeout_ms", "0", "invalid_field"},
      {"hook_timeout_ms", "1001", "invalid_field"},
      {"hook_timeout_ms", R"("10ms")", "invalid_request"},
      {"hook_memory_bytes", "131071", "invalid_field"},
      {"hook_memory_bytes", "67108865", "invalid_field"},
  };
  for (const Case& each : cases) {
    const std::string body = R"({")" + std::string(each.field) + R"(":)" + each.value + "}";
    for (const char* method : {"PUT", "PATCH"}) {
      const HttpReply reply = ask(method, "/v1/queues/orders", body);
      EXPECT_EQ(code_of(reply), each.code) << method << body.substr(0, 100);
      EXPECT_THAT(json_of(reply)["error"]["message"].string_or(""),
                  HasSubstr(std::string(each.field) + ":"));
    }
  }
  broker.with_lock([](auto& asked) { EXPECT_EQ(asked.puts.size() + asked.edited.size(), 0U); });
}

}  // namespace
}  // namespace reprise::server
