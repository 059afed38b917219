#include "spool/follow.h"

#include "support/drain_fixture.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using test::accept_all;
using test::answer;
using test::Ids;
using test::no_answer;
using test::results;
using test::test_id;
using testing::ElementsAre;
using testing::IsEmpty;

class FollowTest : public test::DrainTest {
 protected:
  // `turns[i]` is what happens in the i-th wait for files; after the last one comes an interrupt.
  DrainResult follow_through(std::vector<std::function<void()>> turns) {
    Drain drain = make_drain();
    std::size_t turn = 0;
    const auto wait = [&](Duration longest) {
      file_waits.push_back(longest);
      if (turn == turns.size()) {
        pauses.interrupt();
        return false;
      }
      turns[turn++]();
      return true;
    };
    const DrainWatcher watcher{
        .warn = [this](const std::string& text) { warnings.push_back(text); }, .progress = {}};
    const auto result = follow(drain, wait, clock, pauses, watcher);
    EXPECT_TRUE(result) << result.error().detail;
    return result ? *result : DrainResult();
  }

  std::vector<Duration> file_waits;
};

TEST_F(FollowTest, NewFilesAreSentAndCountersAddUp) {
  put_events(3);
  const DrainResult result = follow_through({[&] { put_event(10); },
                                             [&] {
                                               put_event(11);
                                               put("x.json", "{");
                                             }});
  EXPECT_EQ(result.accepted, 5U);
  EXPECT_EQ(result.corrupt, 1U);
  EXPECT_EQ(result.remaining, 0U);
  EXPECT_EQ(result.end, DrainEnd::interrupted);
  EXPECT_THAT(endpoint.sizes(), ElementsAre(3, 1, 1));
  EXPECT_THAT(file_waits, ElementsAre(60s, 60s, 60s));
}

TEST_F(FollowTest, RejectedEventsRestForAMinute) {
  put_events(2);
  endpoint.script = [](const Ids& ids) {
    return results(
        ids, [](const std::string& id) { return id == test_id(0) ? "rejected" : "accepted"; });
  };
  const DrainResult result = follow_through({
      [&] {
        clock.advance(10s);
        put_event(5);
      },
      [&] { clock.advance(50s); },
  });
  EXPECT_THAT(endpoint.requests,
              ElementsAre(Ids{test_id(0), test_id(1)}, Ids{test_id(5)}, Ids{test_id(0)}));
  EXPECT_THAT(file_waits, ElementsAre(60s, 50s, 60s));
  EXPECT_EQ(result.accepted, 2U);
  EXPECT_EQ(result.remaining, 1U);
  EXPECT_EQ(result.retried, 1U);
  EXPECT_EQ(queued_json(test_id(0))["_attempts"].unsigned_integer(), 2U);
}

TEST_F(FollowTest, WhatRestsIsAmongTheRemaining) {
  put_events(4);
  endpoint.script = [](const Ids& ids) {
    return results(ids, [](const std::string&) { return "rejected"; });
  };
  const DrainResult result = follow_through({
      [&] {
        clock.advance(1s);
        put_event(5);
      },
      [&] { std::filesystem::remove(queue_file(test_id(0) + ".json")); },
  });
  EXPECT_EQ(result.remaining, 4U);
  EXPECT_EQ(result.retried, 4U);
  EXPECT_EQ(result.rejected_files.size(), 4U);
}

TEST_F(FollowTest, ARejectedEventDiesAfterItsAttempts) {
  options.max_attempts = 3;
  put_event(1);
  endpoint.script = [](const Ids& ids) {
    return results(ids, [](const std::string&) { return "rejected"; });
  };
  const DrainResult result =
      follow_through({[&] { clock.advance(60s); }, [&] { clock.advance(60s); }});
  EXPECT_EQ(result.dead_lettered, 1U);
  EXPECT_EQ(result.retried, 0U);
  EXPECT_EQ(result.remaining, 0U);
}

TEST_F(FollowTest, TroubleIsWaitedOutWithLongerWaits) {
  put_event(1);
  std::size_t runs = 0;
  endpoint.script = [&](const Ids& ids) {
    // Four tries a run.
    return ++runs <= 4 * 8 ? no_answer() : accept_all(ids);
  };
  const DrainResult result = follow_through({[&] {
    put_event(2);
    runs = 4 * 8 - 4;
  }});
  std::vector<Duration> waits;
  for (const Duration wait : pauses.waits) {
    if (wait > 4s) waits.push_back(wait);
  }
  EXPECT_THAT(waits, ElementsAre(5s, 10s, 20s, 40s, 80s, 160s, 300s, 300s, 5s));
  EXPECT_EQ(result.accepted, 2U);
  EXPECT_EQ(result.failed_batches, 9U);
}

TEST_F(FollowTest, AnEndpointThatAsksForPatienceGetsIt) {
  put_event(1);
  std::size_t request = 0;
  endpoint.script = [&](const Ids& ids) {
    return ++request == 1 ? IngestAnswer{.status = 503, .retry_after = 1h} : accept_all(ids);
  };
  EXPECT_EQ(follow_through({}).accepted, 1U);
  EXPECT_THAT(pauses.waits, ElementsAre(1h));
}

TEST_F(FollowTest, WhatAPersonMustFixEndsIt) {
  put_event(1);
  endpoint.script = [](const Ids&) { return answer(401); };
  const DrainResult result = follow_through({});
  EXPECT_EQ(result.end, DrainEnd::refused);
  EXPECT_NE(result.stop_reason, "");
  EXPECT_THAT(file_waits, IsEmpty());
  EXPECT_EQ(result.remaining, 1U);
}

TEST_F(FollowTest, AnInterruptEndsIt) {
  put_event(1);
  endpoint.script = [](const Ids&) { return no_answer(); };
  // Three waits of the batch, then that of follow.
  for (std::size_t wait = 1; wait <= 4; ++wait) {
    pauses.waits.clear();
    pauses.interrupt(false);
    pauses.interrupt_in_wait = wait;
    const DrainResult result = follow_through({});
    EXPECT_EQ(result.end, DrainEnd::interrupted);
    EXPECT_EQ(result.remaining, 1U);
    EXPECT_EQ(pauses.waits.size(), wait);
  }
}

}  // namespace
}  // namespace reprise::spool
