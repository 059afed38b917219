#include "spool/drain.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>

#include "spool/event.h"
#include "support/drain_fixture.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using test::answer;
using test::DrainTest;
using test::Ids;
using test::results;
using test::test_id;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

TEST_F(DrainTest, AnEmptySpoolIsDrained) {
  const DrainResult result = run();
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_EQ(result.accepted, 0U);
  EXPECT_THAT(endpoint.requests, IsEmpty());
}

TEST_F(DrainTest, EventsGoInBatchesInTheOrderOfTheirNames) {
  put_events(120);
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 120U);
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_THAT(endpoint.sizes(), ElementsAre(50, 50, 20));
  Ids sent;
  for (const Ids& ids : endpoint.requests) sent.insert(sent.end(), ids.begin(), ids.end());
  EXPECT_EQ(sent.front(), test_id(0));
  EXPECT_TRUE(std::ranges::is_sorted(sent));
  EXPECT_THAT(queued(), IsEmpty());
  EXPECT_THAT(pauses.waits, IsEmpty());
  EXPECT_THAT(progress, ElementsAre(Pair(50, 120), Pair(100, 120), Pair(120, 120)));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(DrainTest, AnEventIsSentAsItWasWrittenWithoutBookkeeping) {
  put(test_id(1) + ".json",
      R"({ "x": 1.50, "id": ")" + test_id(1) + R"(", "_attempts": 2, "a": [ "é" ] })");
  put(test_id(2) + ".json", R"({"id":")" + test_id(2) + R"("})");
  run();
  ASSERT_EQ(endpoint.bodies.size(), 1U);
  EXPECT_THAT(endpoint.bodies.front(), StartsWith(R"({"events":[{ "x": 1.50, "id": )"));
  EXPECT_THAT(endpoint.bodies.front(), HasSubstr(R"([ "é" ])"));
  EXPECT_THAT(endpoint.bodies.front(), testing::EndsWith(R"(},{"id":")" + test_id(2) + R"("}]})"));
  EXPECT_THAT(endpoint.bodies.front(), testing::Not(HasSubstr("_attempts")));
}

TEST_F(DrainTest, ABatchIsAtMostAMebibyte) {
  const std::string filling(300 << 10, 'x');
  for (std::size_t i = 0; i < 7; ++i) put_event(i, R"(,"f":")" + filling + '"');
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 7U);
  EXPECT_THAT(endpoint.sizes(), ElementsAre(3, 3, 1));
  for (const std::string& body : endpoint.bodies) EXPECT_LE(body.size(), kMaxBatchBytes);
}

TEST_F(DrainTest, ABatchMayBeFullToTheLastByte) {
  const auto sized = [&](std::size_t number, std::size_t bytes) {
    const std::string head = R"({"id":")" + test_id(number) + R"(","f":")";
    put(test_id(number) + ".json", head + std::string(bytes - head.size() - 2, 'x') + R"("})");
  };
  sized(0, kMaxEventBytes);
  sized(1, kMaxEventBytes - 1000);
  sized(2, 999);
  sized(3, kMaxEventBytes - 1000);
  sized(4, 1000);
  EXPECT_EQ(run().accepted, 5U);
  EXPECT_THAT(endpoint.sizes(), ElementsAre(1, 2, 1, 1));
  EXPECT_EQ(endpoint.bodies[0].size(), kMaxBatchBytes);
  EXPECT_EQ(endpoint.bodies[1].size(), kMaxBatchBytes);
}

TEST_F(DrainTest, AnEventThatFitsNoBatchDiesUnsent) {
  const std::string head = R"({"id":")" + test_id(1) + R"(","type":"big","f":")";
  put(test_id(1) + ".json", head + std::string(kMaxEventBytes - head.size() - 1, 'x') + R"("})");
  put_event(2);
  const DrainResult result = run();
  EXPECT_EQ(result.dead_lettered, 1U);
  EXPECT_EQ(result.accepted, 1U);
  EXPECT_THAT(endpoint.requests, ElementsAre(Ids{test_id(2)}));
  const Json envelope = this->envelope(test_id(1));
  EXPECT_EQ(envelope["meta"]["reason"].string_or(""), "too_large");
  EXPECT_EQ(envelope["event"]["type"].string_or(""), "big");
}

TEST_F(DrainTest, BookkeepingIsNoPartOfAnEventsSize) {
  const std::string head = R"({"id":")" + test_id(1) + R"(","f":")";
  put(test_id(1) + ".json", head + std::string(kMaxEventBytes - head.size() - 2, 'x') +
                                R"(","_attempts":1,"_lastError":")" + std::string(4000, 'e') +
                                R"("})");
  EXPECT_EQ(run().accepted, 1U);
  EXPECT_EQ(endpoint.bodies.front().size(), kMaxBatchBytes);
}

TEST_F(DrainTest, EachEventHasItsOwnResult) {
  put_events(5);
  endpoint.script = [](const Ids& ids) {
    return results(ids, [](const std::string& id) {
      if (id == test_id(1)) return "duplicate";
      if (id == test_id(2)) return "rejected";
      if (id == test_id(3)) return "deferred";
      return "accepted";
    });
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 2U);
  EXPECT_EQ(result.duplicates, 1U);
  EXPECT_EQ(result.retried, 1U);
  EXPECT_EQ(result.remaining, 2U);
  EXPECT_EQ(result.end, DrainEnd::finished);
  EXPECT_EQ(result.failed_batches, 0U);
  EXPECT_THAT(result.rejected_files, ElementsAre(test_id(2) + ".json"));
  EXPECT_THAT(queued(), ElementsAre(test_id(2) + ".json", test_id(3) + ".json"));
  EXPECT_EQ(test::read_file(queue_file(test_id(3) + ".json")),
            R"({"id":")" + test_id(3) + R"(","type":"t","data":3})");
}

TEST_F(DrainTest, ARejectionIsWrittenDownInTheFile) {
  const std::string id = put_event(1);
  endpoint.script = [&](const Ids& ids) {
    return results(ids, [](const std::string&) { return "rejected"; });
  };
  const std::string first = format_timestamp(clock.now());
  EXPECT_EQ(run().retried, 1U);
  EXPECT_EQ(queued_json(id)["_attempts"].unsigned_integer(), 1U);
  EXPECT_EQ(queued_json(id)["_firstAttemptAt"].string_or(""), first);
  EXPECT_EQ(queued_json(id)["_lastError"].string_or(""), "no: " + id);
  clock.advance(60s);
  run();
  EXPECT_EQ(queued_json(id)["_attempts"].unsigned_integer(), 2U);
  EXPECT_EQ(queued_json(id)["_firstAttemptAt"].string_or(""), first);
  EXPECT_EQ(queued_json(id)["data"].unsigned_integer(), 1U);
}

TEST_F(DrainTest, ARejectionWithoutWordsHasSome) {
  const std::string id = put_event(1);
  endpoint.script = [](const Ids&) {
    return answer(200, R"({"results":[{"index":0,"status":"rejected"}]})");
  };
  run();
  EXPECT_NE(queued_json(id)["_lastError"].string_or(""), "");
}

TEST_F(DrainTest, TheLastAttemptIsFollowedByDeath) {
  options.max_attempts = 3;
  const std::string id = put_event(1);
  endpoint.script = [](const Ids& ids) {
    return results(ids, [](const std::string&) { return "rejected"; });
  };
  const std::string first = format_timestamp(clock.now());
  EXPECT_EQ(run().retried, 1U);
  EXPECT_EQ(run().retried, 1U);
  clock.advance(1s);
  const DrainResult result = run();
  EXPECT_EQ(result.dead_lettered, 1U);
  EXPECT_EQ(result.retried, 0U);
  EXPECT_THAT(queued(), IsEmpty());
  const Json envelope = this->envelope(id);
  EXPECT_EQ(envelope["meta"]["attempts"].unsigned_integer(), 3U);
  EXPECT_EQ(envelope["meta"]["lastError"].string_or(""), "no: " + id);
  EXPECT_EQ(envelope["meta"]["firstAttemptAt"].string_or(""), first);
  EXPECT_EQ(envelope["meta"]["deadLetteredAt"].string_or(""), format_timestamp(clock.now()));
  EXPECT_EQ(envelope["meta"]["reason"].string_or(""), "max_attempts");
  EXPECT_EQ(envelope["event"]["data"].unsigned_integer(), 1U);
  EXPECT_EQ(envelope["event"].find("_attempts"), nullptr);
}

TEST_F(DrainTest, AnEventWhoseAttemptsAreUsedUpDiesUnsent) {
  const std::string at_limit = put_event(1, R"(,"_attempts":10,"_lastError":"old words")");
  const std::string beyond = put_event(2, R"(,"_attempts":4000000000)");
  const std::string below = put_event(3, R"(,"_attempts":9,"_lastError":"x")");
  const DrainResult result = run();
  EXPECT_EQ(result.dead_lettered, 2U);
  EXPECT_EQ(result.accepted, 1U);
  EXPECT_THAT(endpoint.requests, ElementsAre(Ids{below}));
  EXPECT_EQ(envelope(at_limit)["meta"]["attempts"].unsigned_integer(), 10U);
  EXPECT_EQ(envelope(at_limit)["meta"]["lastError"].string_or(""), "old words");
  EXPECT_EQ(envelope(beyond)["meta"]["attempts"].unsigned_integer(), 4000000000U);
  EXPECT_NE(envelope(beyond)["meta"]["lastError"].string_or(""), "");
}

TEST_F(DrainTest, RejectedEventsAtTheHeadDoNotBlockTheTail) {
  put_events(100);
  endpoint.script = [](const Ids& ids) {
    return results(
        ids, [](const std::string& id) { return id < test_id(60) ? "rejected" : "accepted"; });
  };
  const DrainResult result = run();
  EXPECT_EQ(result.accepted, 40U);
  EXPECT_EQ(result.retried, 60U);
  EXPECT_EQ(result.remaining, 60U);
  EXPECT_THAT(endpoint.sizes(), ElementsAre(50, 50));
  for (std::size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(queued_json(test_id(i))["_attempts"].unsigned_integer(), 1U);
  }
}

TEST_F(DrainTest, ARunTakesWhatWasThereWhenItBegan) {
  put_events(3);
  endpoint.script = [this](const Ids& ids) {
    put_event(7);
    return test::accept_all(ids);
  };
  Drain drain = make_drain();
  EXPECT_EQ(drain.run()->accepted, 3U);
  EXPECT_THAT(queued(), ElementsAre(test_id(7) + ".json"));
}

TEST_F(DrainTest, AFileThatVanishesIsNoLongerOneOfThoseFound) {
  options.batch = 1;
  put_events(3);
  endpoint.script = [this](const Ids& ids) {
    std::filesystem::remove(queue_file(test_id(1) + ".json"));
    return test::accept_all(ids);
  };
  Drain drain = make_drain();
  const auto result = drain.run();
  EXPECT_EQ(result->accepted, 2U);
  EXPECT_EQ(result->remaining, 0U);
  EXPECT_EQ(result->corrupt, 0U);
  EXPECT_EQ(result->local_failures, 0U);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr(test_id(1))));
}

TEST_F(DrainTest, AFileThatVanishesUnderItsRequestIsNotWrittenAnew) {
  put_events(3);
  endpoint.script = [this](const Ids& ids) {
    std::filesystem::remove(queue_file(test_id(0) + ".json"));
    std::filesystem::remove(queue_file(test_id(1) + ".json"));
    return results(
        ids, [](const std::string& id) { return id == test_id(0) ? "accepted" : "rejected"; });
  };
  Drain drain = make_drain();
  const auto result = drain.run();
  EXPECT_EQ(result->accepted, 1U);
  EXPECT_EQ(result->retried, 1U);
  EXPECT_EQ(result->remaining, 1U);
  EXPECT_THAT(queued(), ElementsAre(test_id(2) + ".json"));
}

TEST_F(DrainTest, FilesLeftOutAreNotTouched) {
  put_events(3);
  Drain drain = make_drain();
  const auto result =
      drain.run([](const std::string& name) { return name == test_id(1) + ".json"; });
  EXPECT_EQ(result->accepted, 2U);
  EXPECT_EQ(result->remaining, 0U);
  EXPECT_THAT(queued(), ElementsAre(test_id(1) + ".json"));
}

TEST_F(DrainTest, WhatIsNoEventsFileIsLeftAloneAndToldOnce) {
  put_events(1);
  std::filesystem::create_symlink("/etc/passwd", queue_file("link.json"));
  ASSERT_EQ(mkfifo(queue_file("fifo.json").c_str(), 0600), 0);
  Drain drain = make_drain();
  EXPECT_EQ(drain.run()->accepted, 1U);
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_THAT(warnings, Contains(HasSubstr("link.json")));
  EXPECT_EQ(drain.run()->remaining, 0U);
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_TRUE(std::filesystem::is_symlink(queue_file("link.json")));
}

TEST_F(DrainTest, TemporariesOfCrashesAreSweptNotSent) {
  put("." + test_id(1) + ".json.tmp", R"({"id":")" + test_id(1) + R"("})");
  put_event(2);
  Drain drain = make_drain();
  EXPECT_EQ(drain.run()->accepted, 1U);
  EXPECT_THAT(queued(), IsEmpty());
  put("." + test_id(3) + ".json.tmp", "{");
  EXPECT_EQ(drain.run()->accepted, 0U);
  EXPECT_THAT(queued(), IsEmpty());
}

TEST_F(DrainTest, AFileThatCannotBeReadIsNotCorrupt) {
  options.batch = 1;
  put_events(3);
  endpoint.script = [this](const Ids& ids) {
    // After the look at the directory; not even root can read it now.
    std::filesystem::remove(queue_file(test_id(1) + ".json"));
    std::filesystem::create_directory(queue_file(test_id(1) + ".json"));
    return test::accept_all(ids);
  };
  Drain drain = make_drain();
  const auto result = drain.run();
  EXPECT_EQ(result->accepted, 2U);
  EXPECT_EQ(result->corrupt, 0U);
  EXPECT_EQ(result->local_failures, 1U);
  EXPECT_EQ(result->remaining, 1U);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr(test_id(1))));
}

// While it lives no file can be written.
class FullDisk {
 public:
  FullDisk() {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
};

TEST_F(DrainTest, ARejectionThatCannotBeWrittenDownChangesNothing) {
  put_event(0);
  put_event(1, R"(,"_attempts":9)");
  put_event(2);
  put("zzz.json", "no event");
  const std::string before = test::read_file(queue_file(test_id(0) + ".json"));
  endpoint.script = [](const Ids& ids) {
    return results(
        ids, [](const std::string& id) { return id == test_id(2) ? "accepted" : "rejected"; });
  };
  {
    const FullDisk full;
    const DrainResult result = run();
    EXPECT_EQ(result.accepted, 1U);
    EXPECT_EQ(result.retried, 0U);
    EXPECT_EQ(result.dead_lettered, 0U);
    EXPECT_EQ(result.corrupt, 0U);
    EXPECT_EQ(result.remaining, 3U);
    EXPECT_EQ(result.local_failures, 3U);
  }
  EXPECT_EQ(warnings.size(), 3U);
  EXPECT_EQ(test::read_file(queue_file(test_id(0) + ".json")), before);
  const DrainResult result = run();
  EXPECT_EQ(result.retried, 1U);
  EXPECT_EQ(result.dead_lettered, 1U);
  EXPECT_EQ(result.corrupt, 1U);
  EXPECT_EQ(result.local_failures, 0U);
}

}  // namespace
}  // namespace reprise::spool
