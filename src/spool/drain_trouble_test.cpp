// An endpoint in trouble (docs/spool.md, "Draining", 6), and interrupts (8).
#include <algorithm>

#include "spool/drain.h"
#include "support/drain_fixture.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using test::accept_all;
using test::answer;
using test::DrainTest;
using test::Ids;
using test::no_answer;
using test::results;
using test::test_id;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

IngestAnswer asking_for(Duration patience) { return {.status = 503, .retry_after = patience}; }

TEST_F(DrainTest, TroubleIsTriedAgainWithLongerWaits) {
  for (const auto& trouble :
       {no_answer(), answer(408), answer(429), answer(500), answer(502), answer(503), answer(504),
        answer(507), answer(200, "OK"), answer(202, "{}"), answer(204)}) {
    put_events(3);
    pauses.waits.clear();
    std::size_t request = 0;
    endpoint.script = [&](const Ids& ids) { return ++request <= 3 ? trouble : accept_all(ids); };
    const DrainResult result = run();
    EXPECT_EQ(result.accepted, 3U) << trouble.status;
    EXPECT_EQ(result.failed_batches, 0U);
    EXPECT_THAT(pauses.waits, ElementsAre(1s, 2s, 4s));
  }
}

TEST_F(DrainTest, WaitsAreSpreadByAQuarter) {
  SeededRandom seeded(7);
  put_event(1);
  endpoint.script = [](const Ids&) { return no_answer(); };
  for (int i = 0; i < 100; ++i) {
    Drain drain({files, endpoint, pauses, clock, seeded}, options, {});
    ASSERT_TRUE(drain.run());
  }
  ASSERT_EQ(pauses.waits.size(), 300U);
  std::vector<Duration> firsts;
  for (std::size_t i = 0; i < 300; i += 3) {
    firsts.push_back(pauses.waits[i]);
    EXPECT_THAT(pauses.waits[i + 1], AllOf(Ge(1500ms), Le(2500ms)));
    EXPECT_THAT(pauses.waits[i + 2], AllOf(Ge(3s), Le(5s)));
  }
  EXPECT_THAT(firsts, Each(AllOf(Ge(750ms), Le(1250ms))));
  EXPECT_LT(*std::ranges::min_element(firsts), 800ms);
  EXPECT_GT(*std::ranges::max_element(firsts), 1200ms);
}

TEST_F(DrainTest, ThreeFailedBatchesInARowStopTheRun) {
  put_events(250);
  endpoint.script = [](const Ids&) { return answer(503, R"({"error":{"message":"down"}})"); };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::trouble);
  EXPECT_EQ(result.failed_batches, 3U);
  EXPECT_EQ(result.remaining, 250U);
  EXPECT_EQ(result.retried, 0U);
  EXPECT_THAT(result.stop_reason, AllOf(HasSubstr("3 batches"), HasSubstr("503: down")));
  EXPECT_EQ(endpoint.requests.size(), 12U);
  EXPECT_THAT(pauses.waits, ElementsAre(1s, 2s, 4s, 2s, 1s, 2s, 4s, 4s, 1s, 2s, 4s));
  EXPECT_EQ(queued_json(test_id(0)).find("_attempts"), nullptr);
}

TEST_F(DrainTest, AfterTheLastBatchNobodyWaits) {
  put_events(60);
  endpoint.script = [](const Ids&) { return no_answer(); };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_EQ(result.failed_batches, 2U);
  EXPECT_THAT(pauses.waits, ElementsAre(1s, 2s, 4s, 2s, 1s, 2s, 4s));
  EXPECT_EQ(warnings.size(), 2U);
}

TEST_F(DrainTest, ASuccessStartsTheCountAnew) {
  put_events(300);
  std::size_t batch = 0;
  Ids last;
  endpoint.script = [&](const Ids& ids) {
    if (ids != std::exchange(last, ids)) ++batch;
    return batch == 3 ? accept_all(ids) : no_answer();
  };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::trouble);
  EXPECT_EQ(result.accepted, 50U);
  EXPECT_EQ(result.failed_batches, 5U);
  EXPECT_THAT(pauses.waits, ElementsAre(1s, 2s, 4s, 2s, 1s, 2s, 4s, 4s,  // success
                                        1s, 2s, 4s, 2s, 1s, 2s, 4s, 4s, 1s, 2s, 4s));
}

TEST_F(DrainTest, AReplyThatSettlesNothingIsAFailedBatchWithoutAnotherTry) {
  put_events(120);
  endpoint.script = [](const Ids& ids) {
    return results(ids, [](const std::string&) { return "deferred"; });
  };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::trouble);
  EXPECT_EQ(result.failed_batches, 3U);
  EXPECT_EQ(endpoint.requests.size(), 3U);
  EXPECT_THAT(pauses.waits, ElementsAre(2s, 4s));
  endpoint.script = [](const Ids&) { return answer(200, R"({"results":[]})"); };
  EXPECT_EQ(run().failed_batches, 3U);
}

TEST_F(DrainTest, AWishIsHonouredWhenItIsLonger) {
  put_events(60);
  std::size_t request = 0;
  endpoint.script = [&](const Ids& ids) {
    ++request;
    if (request == 1) return asking_for(10s);
    if (request == 2) return answer(429, R"({"error":{"retry_after_seconds":0.5}})");
    if (request == 3) return answer(429, R"({"retry_after_seconds":30})");
    if (request == 4) return asking_for(7s);
    return accept_all(ids);
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 10U);
  EXPECT_EQ(result.failed_batches, 1U);
  EXPECT_THAT(pauses.waits, ElementsAre(10s, 2s, 30s, 7s));
}

TEST_F(DrainTest, AWishBeyondOurPatienceStopsTheRunAtOnce) {
  put_events(120);
  endpoint.script = [](const Ids&) { return asking_for(31s); };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::trouble);
  EXPECT_EQ(result.come_back_after, 31s);
  EXPECT_EQ(result.failed_batches, 1U);
  EXPECT_THAT(result.stop_reason, HasSubstr("31s"));
  EXPECT_EQ(endpoint.requests.size(), 1U);
  EXPECT_THAT(pauses.waits, IsEmpty());
}

TEST_F(DrainTest, WhatAPersonMustFixStopsTheRunAtOnce) {
  put_events(120);
  for (const int status : {301, 302, 307, 308, 401, 403, 404, 405, 406, 409, 410, 415, 418}) {
    endpoint.requests.clear();
    endpoint.script = [&](const Ids&) { return answer(status); };
    const DrainResult result = run();
    EXPECT_EQ(result.end, DrainEnd::refused) << status;
    EXPECT_EQ(result.remaining, 120U);
    EXPECT_EQ(result.failed_batches, 0U);
    EXPECT_THAT(result.stop_reason,
                AllOf(HasSubstr(std::to_string(status)), HasSubstr(endpoint.url())));
    EXPECT_EQ(endpoint.requests.size(), 1U);
    EXPECT_THAT(pauses.waits, IsEmpty());
  }
}

TEST_F(DrainTest, AnInterruptThatCameBeforeSendsNothing) {
  put_events(3);
  pauses.interrupt();
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::interrupted);
  EXPECT_THAT(endpoint.requests, IsEmpty());
}

TEST_F(DrainTest, AnInterruptEndsEveryWait) {
  put_events(150);
  // Three waits for one batch, the one between batches, and one for the second batch.
  for (std::size_t wait = 1; wait <= 5; ++wait) {
    pauses.waits.clear();
    pauses.interrupt(false);
    pauses.interrupt_in_wait = wait;
    endpoint.script = [](const Ids&) { return no_answer(); };
    const DrainResult result = run();
    EXPECT_EQ(result.end, DrainEnd::interrupted) << wait;
    EXPECT_EQ(result.remaining, 150U);
    EXPECT_EQ(pauses.waits.size(), wait);
  }
}

TEST_F(DrainTest, ARequestThatAnInterruptCutOffIsNoTrouble) {
  put_events(3);
  endpoint.script = [this](const Ids&) {
    pauses.interrupt();
    return no_answer();
  };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::interrupted);
  EXPECT_EQ(result.failed_batches, 0U);
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(DrainTest, WhatWasAcceptedIsGoneAfterAnInterrupt) {
  put_events(100);
  endpoint.script = [this](const Ids& ids) {
    pauses.interrupt();
    return results(
        ids, [](const std::string& id) { return id < test_id(10) ? "rejected" : "accepted"; });
  };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::interrupted);
  EXPECT_EQ(result.accepted, 40U);
  EXPECT_EQ(result.remaining, 60U);
}

TEST_F(DrainTest, AnInterruptAfterTheLastAnswerChangesNothing) {
  put_events(10);
  endpoint.script = [this](const Ids& ids) {
    pauses.interrupt();
    return accept_all(ids);
  };
  EXPECT_EQ(run().end, DrainEnd::finished);
}

}  // namespace
}  // namespace reprise::spool
