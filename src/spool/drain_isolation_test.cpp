// A whole batch is refused (docs/spool.md, "Draining", 5): who spoils it, and what becomes of the
// others.
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
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

bool holds(const Ids& ids, std::size_t number) {
  return std::ranges::find(ids, test_id(number)) != ids.end();
}

// Where event `number` is in the batch; beyond its end: nowhere.
std::size_t place_of(const Ids& ids, std::size_t number) {
  return static_cast<std::size_t>(std::ranges::find(ids, test_id(number)) - ids.begin());
}

TEST_F(DrainTest, TheNamedOffenderIsRejectedAndTheOthersAreSentWithoutIt) {
  for (const int status : {400, 413, 422}) {
    put_events(10);
    endpoint.requests.clear();
    endpoint.script = [&](const Ids& ids) {
      if (!holds(ids, 3)) return accept_all(ids);
      return answer(
          status,
          R"({"error":{"message":"bad batch","details":[{"index":3,"message":"bad one"}]}})");
    };
    const DrainResult result = run();
    EXPECT_EQ(result.accepted, 9U);
    EXPECT_EQ(result.retried, 1U);
    EXPECT_EQ(result.end, DrainEnd::finished);
    EXPECT_EQ(result.failed_batches, 0U);
    EXPECT_THAT(endpoint.sizes(), ElementsAre(10, 9));
    EXPECT_EQ(queued_json(test_id(3))["_lastError"].string_or(""), "bad one");
    std::filesystem::remove(queue_file(test_id(3) + ".json"));
  }
  EXPECT_THAT(pauses.waits, IsEmpty());
}

TEST_F(DrainTest, AnOffenderMayBeNamedInTheText) {
  put_events(10);
  endpoint.script = [&](const Ids& ids) {
    if (!holds(ids, 7)) return accept_all(ids);
    return answer(400, fmt::format("events[{}].type: missing", place_of(ids, 7)));
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 9U);
  EXPECT_EQ(result.retried, 1U);
  EXPECT_EQ(endpoint.requests.size(), 2U);
  EXPECT_EQ(queued_json(test_id(7))["_lastError"].string_or(""), "events[7].type: missing");
}

TEST_F(DrainTest, TwoOffendersOneAfterTheOther) {
  put_events(10);
  endpoint.script = [&](const Ids& ids) {
    const std::size_t place = std::min(place_of(ids, 2), place_of(ids, 8));
    if (place == ids.size()) return accept_all(ids);
    return answer(422, fmt::format(R"({{"errors":[{{"index":{},"error":"bad"}}]}})", place));
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 8U);
  EXPECT_EQ(result.retried, 2U);
  EXPECT_THAT(endpoint.sizes(), ElementsAre(10, 9, 8));
}

TEST_F(DrainTest, AnUnnamedOffenderIsFoundByHalving) {
  put_events(50);
  endpoint.script = [&](const Ids& ids) {
    return holds(ids, 17) || holds(ids, 33) ? answer(400, "bad request") : accept_all(ids);
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 48U);
  EXPECT_EQ(result.retried, 2U);
  EXPECT_THAT(endpoint.requests, SizeIs(Le(27U)));
  EXPECT_EQ(queued_json(test_id(17))["_lastError"].string_or(""), "bad request");
  EXPECT_EQ(queued_json(test_id(33))["_attempts"].unsigned_integer(), 1U);
  EXPECT_THAT(pauses.waits, IsEmpty());
}

TEST_F(DrainTest, ASingleEventIsRejectedEvenWithoutWords) {
  const std::string id = put_event(1);
  endpoint.script = [](const Ids&) { return answer(413); };
  EXPECT_EQ(run().retried, 1U);
  EXPECT_EQ(queued_json(id)["_lastError"].string_or(""), "HTTP 413");
  options.max_attempts = 2;
  EXPECT_EQ(run().dead_lettered, 1U);
  EXPECT_EQ(envelope(id)["meta"]["lastError"].string_or(""), "HTTP 413");
}

TEST_F(DrainTest, AnEndpointThatTakesSmallerBatchesGetsThem) {
  put_events(50);
  endpoint.script = [](const Ids& ids) {
    return ids.size() > 10 ? answer(413, "too many") : accept_all(ids);
  };
  EXPECT_EQ(run().accepted, 50U);
}

TEST_F(DrainTest, LiesAboutOffendersAreNotBelieved) {
  for (const char* lie :
       {R"({"errors":[{"index":50},{"index":-1},{"index":"3"},{"index":1e30}]})",
        R"({"errors":{"index":[3]}})", "events[50] events[-1] events[x]", R"({"details":"?"})"}) {
    put_events(4);
    endpoint.requests.clear();
    endpoint.script = [&](const Ids& ids) {
      return holds(ids, 2) ? answer(400, lie) : accept_all(ids);
    };
    const DrainResult result = run();
    EXPECT_EQ(result.accepted, 3U) << lie;
    EXPECT_EQ(result.retried, 1U) << lie;
    EXPECT_THAT(endpoint.sizes(), ElementsAre(4, 2, 2, 1, 1));
    std::filesystem::remove(queue_file(test_id(2) + ".json"));
  }
}

TEST_F(DrainTest, AnEndpointThatRefusesEverythingCostsEachEventOneAttempt) {
  put_events(20);
  endpoint.script = [](const Ids&) {
    return answer(400, R"({"errors":[{"index":0},{"index":1}]})");
  };
  EXPECT_EQ(run().retried, 20U);
  endpoint.script = [](const Ids&) { return answer(400); };
  EXPECT_EQ(run().retried, 20U);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(queued_json(test_id(i))["_attempts"].unsigned_integer(), 2U);
  }
}

TEST_F(DrainTest, AnOffenderThatIsTheLastOneLeavesNothingToSend) {
  put_events(2);
  endpoint.script = [](const Ids&) {
    return answer(400, R"({"errors":[{"index":0,"error":"a"},{"index":1,"error":"b"}]})");
  };
  const DrainResult result = run();
  EXPECT_EQ(result.retried, 2U);
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_EQ(endpoint.requests.size(), 1U);
}

TEST_F(DrainTest, TroubleInTheSearchLeavesTheUnsettledAsTheyWere) {
  put_events(8);
  endpoint.script = [&](const Ids& ids) {
    if (ids.size() == 8) return answer(400);
    return holds(ids, 0) ? accept_all(ids) : answer(503);
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 4U);
  EXPECT_EQ(result.retried, 0U);
  EXPECT_EQ(result.remaining, 4U);
  EXPECT_EQ(result.failed_batches, 1U);
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_THAT(pauses.waits, ElementsAre(1s, 2s, 4s));
  for (std::size_t i = 4; i < 8; ++i) {
    EXPECT_EQ(queued_json(test_id(i)).find("_attempts"), nullptr);
  }
}

TEST_F(DrainTest, TroubleInTheSearchMayPass) {
  put_events(8);
  std::size_t request = 0;
  endpoint.script = [&](const Ids& ids) {
    ++request;
    if (request == 2 || request == 3) return no_answer();
    return holds(ids, 5) ? answer(422) : accept_all(ids);
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 7U);
  EXPECT_EQ(result.retried, 1U);
  EXPECT_EQ(result.failed_batches, 0U);
  EXPECT_THAT(pauses.waits, ElementsAre(1s, 2s));
}

TEST_F(DrainTest, ARefusedTokenEndsTheSearch) {
  put_events(8);
  endpoint.script = [&](const Ids& ids) {
    if (ids.size() == 8) return answer(400);
    return holds(ids, 0) ? accept_all(ids) : answer(401);
  };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::refused);
  EXPECT_EQ(result.accepted, 4U);
  EXPECT_EQ(result.remaining, 4U);
}

TEST_F(DrainTest, InTheSearchEventsWithoutAVerdictDoNotHoldUpTheOthers) {
  put_events(4);
  endpoint.script = [&](const Ids& ids) {
    if (ids.size() == 4) return answer(400);
    return results(ids, [](const std::string& id) {
      return id == test_id(0) || id == test_id(1) ? "deferred" : "accepted";
    });
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 2U);
  EXPECT_EQ(result.remaining, 2U);
  EXPECT_EQ(result.failed_batches, 0U);
}

TEST_F(DrainTest, AnInterruptEndsTheSearchBetweenTwoRequests) {
  put_events(8);
  endpoint.script = [&](const Ids& ids) {
    if (ids.size() == 8) return answer(400);
    pauses.interrupt();
    return accept_all(ids);
  };
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::interrupted);
  EXPECT_EQ(result.accepted, 4U);
  EXPECT_EQ(endpoint.requests.size(), 2U);
}

}  // namespace
}  // namespace reprise::spool
