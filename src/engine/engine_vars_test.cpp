// vars and defaults: which payloads a queue takes, and as what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/hook_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineVars : public test::HookFixture {
 protected:
  EngineVars() { configure(kConfig); }

  // One word for each job: pushed, duplicate, or the code of its error.
  Names outcomes(const std::vector<NewJob>& jobs) {
    PushCommand command{.queue = queue_};
    for (const NewJob& job : jobs) command.jobs.emplace_back(job);
    const auto reply = push_at_once(std::move(command));
    Names words;
    if (!reply) return {std::string(errc_info(reply.error().code).wire_name)};
    for (const Result<PushedJob>& result : reply->results) {
      if (!result) {
        last_error_ = result.error().detail;
        words.emplace_back(errc_info(result.error().code).wire_name);
      } else {
        words.emplace_back(result->duplicate ? "duplicate" : "pushed");
      }
    }
    return words;
  }

  const QueueConfig kConfig{.vars = {"id", "customer"}, .defaults = R"({"customer":"unknown"})"};
  std::string last_error_;
};

TEST_F(EngineVars, WhatIsMissingIsRefusedJobByJob) {
  EXPECT_THAT(outcomes({{.payload = R"({"id":1,"customer":"a"})"},
                        {.payload = R"({"customer":"b"})"},
                        {.payload = "[]"},
                        {.payload = R"({"id":2})", .payload_kind = PayloadKind::bytes},
                        {.payload = R"({"id":3})"}}),
              ElementsAre("pushed", "missing_var", "missing_var", "missing_var", "pushed"));
  EXPECT_THAT(claim_all(),
              ElementsAre(R"({"id":1,"customer":"a"})", R"({"id":3,"customer":"unknown"})"));
  EXPECT_EQ(totals().pushed, 2U);
}

TEST_F(EngineVars, TheMessageNamesFieldAndQueue) {
  outcomes({{.payload = "{}"}});
  EXPECT_EQ(last_error_, "field 'id' is missing: queue 'orders' requires id, customer");
}

TEST_F(EngineVars, WhatWasRefusedOnItsWayStaysRefusedForThat) {
  const auto reply = push_at_once(
      {.queue = queue_, .jobs = {Error{Errc::key_too_long, ""}, NewJob{.payload = "1"}}});
  EXPECT_EQ(reply->results.at(0).error().code, Errc::key_too_long);
  EXPECT_EQ(reply->results.at(1).error().code, Errc::missing_var);
}

TEST_F(EngineVars, ADuplicateMustBeAcceptableToo) {
  EXPECT_THAT(outcomes({{.payload = R"({"id":1})", .key = "k"}}), ElementsAre("pushed"));
  EXPECT_THAT(outcomes({{.payload = R"({"id":1})", .key = "k"}, {.payload = "{}", .key = "k"}}),
              ElementsAre("duplicate", "missing_var"));
  EXPECT_THAT(
      outcomes({{.payload = "{}", .key = "other"}, {.payload = R"({"id":2})", .key = "other"}}),
      ElementsAre("missing_var", "pushed"))
      << "a refused job leaves its key free";
}

TEST_F(EngineVars, DefaultsCountAsBytesOfTheQueue) {
  outcomes({{.payload = R"({"id":1})"}});
  EXPECT_EQ(stats().bytes, std::string_view(R"({"id":1,"customer":"unknown"})").size());
  QueueConfig small = kConfig;
  small.max_bytes = stats().bytes + 10;
  configure(small);
  EXPECT_THAT(outcomes({{.payload = R"({"id":2})"}}), ElementsAre("queue_bytes_full"));
}

TEST_F(EngineVars, APayloadThatGrowsBeyondTheLimitIsRefused) {
  limits_.max_payload_bytes = 40;
  restart();
  const std::string fits = R"({"id":"12345678901234"})";
  EXPECT_THAT(outcomes({{.payload = fits}}), ElementsAre("payload_too_large"));
  EXPECT_THAT(last_error_, HasSubstr("44 bytes with the defaults of queue 'orders'"));
  EXPECT_THAT(outcomes({{.payload = R"({"id":1,"customer":"not the engine's business"})"}}),
              ElementsAre("pushed"))
      << "what did not grow was judged by the server";
}

TEST_F(EngineVars, ABatchThatGrowsBeyondTheLimitIsRefusedAsAWhole) {
  limits_.max_batch_bytes = 60;
  restart();
  expect_no_change([&] {
    EXPECT_THAT(
        outcomes(
            {{.payload = R"({"id":1})"}, {.payload = R"({"id":2})"}, {.payload = R"({"id":3})"}}),
        ElementsAre("batch_too_large"));
  });
  EXPECT_THAT(outcomes({{.payload = R"({"id":1})"}, {.payload = R"({"id":2})"}}),
              ElementsAre("pushed", "pushed"));
}

TEST_F(EngineVars, HooksSeeTheWholeJobAndNoneThatIsRefused) {
  configure(with_hook(HookKind::on_enqueue, kConfig));
  const RequestId id = start_push({R"({"id":1})", "{}"});
  const HookCall call = only_call();
  EXPECT_EQ(call.message.job->payload, R"({"id":1,"customer":"unknown"})");
  answer(call, test::accept_as_pushed());
  const auto results = push_answer(id);
  EXPECT_TRUE(results.at(0));
  EXPECT_EQ(results.at(1).error().code, Errc::missing_var);
}

TEST_F(EngineVars, FollowTheConfigAndSurviveARestart) {
  configure({});
  EXPECT_THAT(outcomes({{.payload = "plain"}}), ElementsAre("pushed"));
  configure({.defaults = R"({"a":1.0})"});
  EXPECT_THAT(outcomes({{.payload = "{}"}, {.payload = "null"}}), ElementsAre("pushed", "pushed"));
  configure(kConfig);
  restart();
  EXPECT_THAT(outcomes({{.payload = "{}"}}), ElementsAre("missing_var"));
  ASSERT_TRUE(engine_->edit_queue(
      queue_, [](QueueConfig& config) { return config.vars.clear(), ok(); }, now()));
  EXPECT_THAT(outcomes({{.payload = "{}"}}), ElementsAre("pushed"));
  EXPECT_THAT(claim_all(),
              ElementsAre("plain", R"({"a":1.0})", "null", R"({"customer":"unknown"})"));
}

TEST_F(EngineVars, WhatWasTakenOnceIsNotAskedAgain) {
  configure({.retry = {.attempts = 2}});
  push("old");
  QueueConfig strict = kConfig;
  strict.retry.attempts = 2;
  configure(strict);
  EXPECT_EQ(fail(claim_one())->status, JobStatus::failed);
  tick();
  EXPECT_EQ(fail(claim_one())->status, JobStatus::dead);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineVars, JobsFromOtherQueuesAreNotAsked) {
  look_at("shop");
  configure({.dead_letter_queue = "orders"});
  push("a");
  ASSERT_EQ(fail(claim_one())->status, JobStatus::dead);
  look_at("orders");
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(EngineVars, AQueueMadeByAPushAsksForNothing) {
  look_at("fresh");
  const auto reply =
      push_at_once({.queue = queue_, .create = true, .jobs = {NewJob{.payload = "plain"}}});
  EXPECT_TRUE(reply->results.at(0));
}

}  // namespace
}  // namespace reprise
