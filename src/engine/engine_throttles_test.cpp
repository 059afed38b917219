// Throttles from push to delivery: what jobs that name a key may be started with. What holds over
// any steps is in engine_scheduling_property_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/engine_fixture.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kNs{kDefaultNamespace};

class EngineThrottles : public test::EngineFixture {
 protected:
  static NewJob needing(std::vector<std::string> throttle_keys, std::string key = "default",
                        std::uint32_t weight = 1) {
    NewJob job;
    job.scheduling = {std::move(key), weight, std::move(throttle_keys)};
    return job;
  }
  Result<ThrottleStats> try_set(const std::string& key, const Rate& rate, std::uint32_t burst) {
    return engine_->set_throttle({.ns = kNs, .key = key, .rate = rate, .burst = burst}, now());
  }
  void set(const std::string& key, const Rate& rate, std::uint32_t burst) {
    const auto done = try_set(key, rate, burst);
    EXPECT_TRUE(done) << done.error().detail;
  }
  void set_empty(const std::string& key, const Rate& rate, std::uint32_t burst = 1) {
    set(key, rate, burst);
    push_all(std::vector<Result<NewJob>>(burst, needing({key}, "used up")));
    EXPECT_THAT(claim(burst), SizeIs(burst));
    EXPECT_EQ(tokens(key), 0);
  }
  void unset(const std::string& key) { EXPECT_TRUE(engine_->unset_throttle(kNs, key, now())); }
  double tokens(const std::string& key) {
    const auto stats = engine_->throttle(kNs, key, now());
    EXPECT_TRUE(stats);
    return stats ? stats->tokens : -1;
  }
  std::uint64_t waiting_for(const std::string& key) {
    return engine_->throttle(kNs, key, now())->waiting;
  }
  // All payloads that waiting claims have got since the last call, in order.
  Names answered() {
    Names all;
    for (const auto& [id, got] : answers()) all.insert(all.end(), got.begin(), got.end());
    return all;
  }
  // To when something is due, and what is due then is done.
  void wake() {
    clock_.set(std::max(now(), engine_->next_wake()));
    ticks_until_idle();
  }
};

// --- The rate.

TEST_F(EngineThrottles, GivesWhatTheBucketHolds) {
  set("api", {10, 1s}, 3);
  for (int i = 0; i < 10; ++i) push(std::to_string(i), needing({"api"}));
  EXPECT_THAT(claim_all(), ElementsAre("0", "1", "2"));
  pass(100ms - 1us);
  EXPECT_THAT(claim_all(), IsEmpty());
  advance(1us);
  EXPECT_THAT(claim_all(), ElementsAre("3"));
  advance(1h);
  EXPECT_THAT(claim_all(), ElementsAre("4", "5", "6")) << "the burst and no more";
}

TEST_F(EngineThrottles, AKeyThatIsNotSetHoldsNothingBack) {
  for (int i = 0; i < 10; ++i) push(std::to_string(i), needing({"nobody", "knows"}));
  EXPECT_THAT(claim_all(), SizeIs(10));
}

TEST_F(EngineThrottles, AClaimThatWaitsIsAnsweredWhenTheTokenComes) {
  set_empty("api", {7, 3s});
  push("a", needing({"api"}));
  start_waiting(1);
  EXPECT_EQ(engine_->next_wake(), now() + 428'572us);
  advance(428'571us);
  EXPECT_THAT(answers(), IsEmpty());
  advance(1us);
  EXPECT_THAT(answered(), ElementsAre("a"));
}

// The server comes 0.1 to 3 ms late each time, and loses nothing; nor does anybody get a job before
// its time.
TEST_F(EngineThrottles, IsExactThoughTheServerIsLate) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SeededRandom dice(seed);
    const std::string key = "api" + std::to_string(seed);
    look_at("queue" + std::to_string(seed));
    configure({});
    set_empty(key, {1000, 1s});
    push_all(std::vector<Result<NewJob>>(1'100, needing({key})));
    for (ClaimId id = 1; id <= 1'100; ++id) start_waiting(id);
    const Timestamp begin = now();
    std::int64_t given = 0;
    while (now() < begin + 1s) {
      const Duration late(100 + dice.below(2'901));
      clock_.set(std::min(engine_->next_wake() + late, begin + 1s));
      ticks_until_idle();
      given += static_cast<std::int64_t>(answered().size());
      ASSERT_EQ(given, (now() - begin) / 1ms) << "after " << (now() - begin).count() << "us";
    }
    EXPECT_EQ(given, 1'000);
    engine_->cancel_all_claims();
    answers();
  }
}

TEST_F(EngineThrottles, ALongDelayIsNotMadeUpFor) {
  set_empty("api", {1000, 1s});
  push_all(std::vector<Result<NewJob>>(1'000, needing({"api"})));
  for (ClaimId id = 1; id <= 500; ++id) start_waiting(id);
  advance(10s);
  ticks_until_idle();
  EXPECT_THAT(answered(), SizeIs(21)) << "20 ms of it";
}

// --- What a token is spent on.

TEST_F(EngineThrottles, ReleasingOrFailingDoesNotGiveItBack) {
  set("api", {1, 1h}, 2);
  push("a", needing({"api"}));
  push("b", needing({"api"}));
  EXPECT_TRUE(release(claim_one()));
  EXPECT_TRUE(fail(claim_one(), {.delay = 0s}));
  EXPECT_EQ(tokens("api"), 0);
  EXPECT_THAT(claim_all(), IsEmpty());
}

// The reply could not be sent. Whoever waits for the token has it at once.
TEST_F(EngineThrottles, AJobThatNobodyGotCostsNone) {
  set("api", {1, 1h}, 1);
  push("a", needing({"api"}));
  push("b", needing({"api"}, "other"));
  const ClaimedJob job = claim_one();
  EXPECT_THAT(claim_all(), IsEmpty());
  start_waiting(1);
  const ReleaseItem item{.token = job.token, .undelivered = true};
  ASSERT_TRUE(engine_->release({&item, 1}, now()).front());
  ticks_until_idle();
  EXPECT_THAT(answered(), SizeIs(1));
  EXPECT_EQ(tokens("api"), 0);
}

TEST_F(EngineThrottles, AJobOverItsTtlCostsNone) {
  set("api", {1, 1h}, 1);
  NewJob mortal = needing({"api"});
  mortal.ttl = 1s;
  for (int i = 0; i < 5; ++i) push("dead" + std::to_string(i), mortal);
  push("alive", needing({"api"}));
  pass(2s);
  EXPECT_THAT(claim_all(), ElementsAre("alive"));
  EXPECT_EQ(counts().dead, 5U);
  EXPECT_EQ(tokens("api"), 0);
}

TEST_F(EngineThrottles, AJobThatCannotBeReadCostsNone) {
  set("api", {1, 1h}, 1);
  for (int i = 0; i < 5; ++i) {
    ledger_.corrupt_records.insert(key_of(push("damaged", needing({"api"}))));
  }
  EXPECT_THAT(claim_all(), IsEmpty());
  EXPECT_EQ(tokens("api"), 1);
  push("sound", needing({"api"}));
  EXPECT_THAT(claim_all(), ElementsAre("sound"));
}

// One that was woken for a token and turns out to be dead leaves it to the next in line.
TEST_F(EngineThrottles, AWokenJobThatIsDeadPassesTheTokenOn) {
  set_empty("api", {1, 1s});
  ledger_.corrupt_records.insert(key_of(push("damaged", needing({"api"}, "a"))));
  push("b", needing({"api"}, "b"));
  start_waiting(1);
  wake();
  EXPECT_THAT(answered(), ElementsAre("b"));
}

TEST_F(EngineThrottles, AWokenJobThatIsDroppedPassesTheTokenOn) {
  set_empty("api", {1, 1s});
  const Seq first = push("a", needing({"api"}, "a"));
  push("b", needing({"api"}, "b"));
  EXPECT_THAT(claim_all(), IsEmpty());
  advance(1s);  // wakes one, and nobody claims
  EXPECT_TRUE(drop(first));
  ticks_until_idle();
  EXPECT_THAT(claim_all(), ElementsAre("b"));
}

TEST_F(EngineThrottles, SeveralKeysAreTakenTogetherOrNotAtAll) {
  set("a", {1, 1h}, 3);
  set("b", {1, 1h}, 1);
  for (int i = 0; i < 3; ++i) push("both" + std::to_string(i), needing({"a", "b", "a"}));
  push("a only", needing({"a"}));
  EXPECT_THAT(claim_all(), ElementsAre("both0", "a only"));
  EXPECT_EQ(tokens("a"), 1) << "each once, though it was named twice";
  EXPECT_EQ(tokens("b"), 0);
}

TEST_F(EngineThrottles, TheyWaitUntilAllHaveOneAtTheSameMoment) {
  set_empty("a", {1, 2s});
  set_empty("b", {1, 3s});
  push("both", needing({"a", "b"}));
  start_waiting(1);
  advance(2s);
  ticks_until_idle();
  EXPECT_THAT(answered(), IsEmpty());
  EXPECT_EQ(tokens("a"), 1);
  advance(1s);
  ticks_until_idle();
  EXPECT_THAT(answered(), ElementsAre("both"));
}

// --- What is held up.

TEST_F(EngineThrottles, AHeadWithoutATokenHoldsUpNobody) {
  set_empty("api", {1, 1h});
  set("other", {1, 1h}, 1);
  push("head", needing({"api"}));
  push("second", needing({"api"}));
  push("plain");
  push("other", needing({"other"}));
  push("of another key", needing({}, "k"));
  NewJob urgent = needing({"api"});
  urgent.priority = 1;
  push("urgent", urgent);
  auto given = claim_all();
  std::ranges::sort(given);
  EXPECT_THAT(given, ElementsAre("of another key", "other", "plain"));
  EXPECT_EQ(waiting_for("api"), 1U) << "one strand";
  unset("api");
  ticks_until_idle();
  EXPECT_THAT(claim_all(), ElementsAre("urgent", "head", "second"));
}

TEST_F(EngineThrottles, TheOrderIsKeptWithinAKeyAndItsThrottles) {
  set_empty("api", {10, 1s});
  for (int i = 0; i < 5; ++i) push(std::to_string(i), needing({"api"}));
  Names given;
  for (int i = 0; i < 5; ++i) {
    advance(100ms);
    for (const std::string& name : claim_all()) given.push_back(name);
  }
  EXPECT_THAT(given, ElementsAre("0", "1", "2", "3", "4"));
}

TEST_F(EngineThrottles, KeysThatWaitForOneGetItByTheirWeights) {
  set_empty("api", {10, 1s});
  for (int i = 0; i < 100; ++i) {
    push("1", needing({"api"}, "one", 1));
    push("2", needing({"api"}, "two", 2));
    push("3", needing({"api"}, "three", 3));
  }
  start_waiting(0);
  std::map<std::string, int> given;
  for (int i = 1; i <= 120; ++i) {
    start_waiting(static_cast<ClaimId>(i));
    advance(100ms);
    ticks_until_idle();
    for (const std::string& name : answered()) ++given[name];
  }
  EXPECT_NEAR(given["1"], 20, 2);
  EXPECT_NEAR(given["2"], 40, 2);
  EXPECT_NEAR(given["3"], 60, 2);
}

// A token may be claimed before it comes, after that, and before the server has noticed that it has
// come: the shares are the same, in any run of deliveries.
TEST_F(EngineThrottles, WhenATokenIsClaimedMakesNoDifferenceToTheShares) {
  enum class Comes { before, after, unnoticed };
  set_empty("api", {200, 1s});
  for (std::uint64_t seed = 0; seed < test::seed_count(20); ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    const std::string number = std::to_string(seed);
    for (int i = 0; i < 100; ++i) push("a", needing({"api"}, "a" + number, 1));
    for (int i = 0; i < 100; ++i) push("b", needing({"api"}, "b" + number, 3));
    double of_a = 0;
    for (int given = 1; given <= 100; ++given) {
      const Comes comes{static_cast<int>(random.below(3))};
      Names got;
      if (comes == Comes::before) {
        // At once if the server was late with the last one, which is made up for.
        const auto at_once = engine_->claim(1'000'000, {.queue = queue_, .wait = 1min}, now());
        if (at_once) got = names((*at_once)->jobs);
      }
      advance(std::chrono::milliseconds(5 + random.below(4)));
      if (comes != Comes::unnoticed) ticks_until_idle();
      if (got.empty()) got = comes == Comes::before ? answered() : names(claim());
      ASSERT_THAT(got, SizeIs(1)) << "delivery " << given;
      if (got.front() == "a") ++of_a;
      ASSERT_NEAR(of_a, given / 4.0, 2) << "delivery " << given;
    }
    unset("api");
    claim_all();
    set_empty("api", {200, 1s});
  }
}

TEST_F(EngineThrottles, ManyTokensAtOnceAreSharedByWeightToo) {
  set_empty("api", {10, 1s}, 10);
  for (int i = 0; i < 200; ++i) push("a", needing({"api"}, "a", 1));
  for (int i = 0; i < 200; ++i) push("b", needing({"api"}, "b", 3));
  std::ptrdiff_t of_a = 0;
  for (int given = 10; given <= 200; given += 10) {
    advance(1s);
    if (given % 20 == 0) ticks_until_idle();
    const Names got = names(claim(100));
    ASSERT_THAT(got, SizeIs(10));
    of_a += std::ranges::count(got, "a");
    ASSERT_NEAR(static_cast<double>(of_a), given / 4.0, 2) << "delivery " << given;
  }
}

TEST_F(EngineThrottles, QueuesThatWaitForOneTakeTurns) {
  set_empty("api", {10, 1s});
  const Names queues{"qa", "qb", "qc"};
  for (const std::string& name : queues) {
    look_at(name);
    configure({});
    for (int i = 0; i < 20; ++i) push(name, needing({"api"}));
    for (ClaimId id = 0; id < 20; ++id) start_waiting(100 * name.back() + id);
  }
  Names given;
  for (int i = 0; i < 30; ++i) {
    advance(100ms);
    ticks_until_idle();
    for (const std::string& name : answered()) given.push_back(name);
  }
  ASSERT_THAT(given, SizeIs(30));
  for (std::size_t i = 3; i < given.size(); ++i) EXPECT_EQ(given[i], given[i - 3]) << i;
}

// Whichever of its lanes they are served from.
TEST_F(EngineThrottles, AQueueWithBothLanesHasNoMoreTurns) {
  configure({.retry = {.attempts = 9, .wait = Duration::zero()}});
  for (int i = 0; i < 40; ++i) push("a", needing({"api"}));
  for (const ClaimedJob& job : claim(20)) EXPECT_TRUE(fail(job));
  set("api", {10, 1s}, 1);
  EXPECT_THAT(claim(20), SizeIs(1));  // its only token
  for (ClaimId id = 0; id < 30; ++id) start_waiting(id);
  look_at("other");
  configure({});
  for (int i = 0; i < 20; ++i) push("b", needing({"api"}));
  for (ClaimId id = 100; id < 130; ++id) start_waiting(id);
  std::map<std::string, int> given;
  for (int i = 0; i < 20; ++i) {
    advance(100ms);
    ticks_until_idle();
    for (const std::string& name : answered()) ++given[name];
  }
  EXPECT_NEAR(given["a"], given["b"], 2);
}

// Its key goes on with jobs that need no token; the token is for others then.
TEST_F(EngineThrottles, AWokenJobBehindOthersOfItsKeyKeepsNoTokenFromOtherKeys) {
  set_empty("api", {10, 1s});
  push("first", needing({"api"}, "long"));
  for (int i = 0; i < 20; ++i) push("throttled", needing({"api"}, "other"));
  EXPECT_THAT(claim_all(), IsEmpty());
  for (int i = 0; i < 1000; ++i) {
    NewJob urgent = needing({}, "long");
    urgent.priority = 1;
    push("free", urgent);
  }
  std::map<std::string, int> given;
  for (int i = 0; i < 10; ++i) {
    advance(100ms);
    for (int each = 0; each < 5; ++each) {
      ticks_until_idle();
      for (const ClaimedJob& job : claim(1)) ++given[job.record->payload];
    }
  }
  EXPECT_GE(given["throttled"], 9);
}

// However many newcomers with a larger weight there are.
TEST_F(EngineThrottles, WhoWaitsForATokenComesUpWhileOthersComeAndGo) {
  set_empty("api", {10, 1s});
  push("patient", needing({"api"}, "patient", 1));
  int pushed = 0;
  const auto newcomer = [&] { push("new", needing({"api"}, "n" + std::to_string(pushed++), 2)); };
  for (int i = 0; i < 30; ++i) newcomer();
  Names given;
  for (int i = 0; i < 100; ++i) {
    start_waiting(static_cast<ClaimId>(i));
    advance(100ms);
    ticks_until_idle();
    for (const std::string& name : answered()) {
      given.push_back(name);
      newcomer();
    }
  }
  const auto place = std::ranges::find(given, "patient");
  ASSERT_NE(place, given.end());
  EXPECT_LE(place - given.begin(), 62) << "more than one turn of each that was there";
}

// A queue that nobody claims from keeps no token from others.
TEST_F(EngineThrottles, AQueueWithoutWorkersHoldsUpNoOther) {
  set_empty("api", {10, 1s});
  push("idle", needing({"api"}));
  EXPECT_THAT(claim_all(), IsEmpty());
  look_at("busy");
  configure({});
  for (int i = 0; i < 10; ++i) push("busy", needing({"api"}));
  for (ClaimId id = 0; id < 10; ++id) start_waiting(id);
  for (int i = 0; i < 10; ++i) {
    advance(100ms);
    ticks_until_idle();
    EXPECT_THAT(answered(), SizeIs(1)) << i;
  }
}

TEST_F(EngineThrottles, ADeletedQueueLeavesOthersServed) {
  set_empty("api", {10, 1s});
  for (int i = 0; i < 20; ++i) push("gone", needing({"api", "more"}, "k" + std::to_string(i)));
  EXPECT_THAT(claim_all(), IsEmpty());
  look_at("other");
  configure({});
  push("a", needing({"api"}));
  push("b", needing({"api", "more"}));
  start_waiting(1, {.max = 1});
  start_waiting(2, {.max = 1});
  pass(100ms);
  tick();  // strands of both queues are woken
  look_at("orders");
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  ticks_until_idle();
  advance(100ms);
  ticks_until_idle();
  EXPECT_THAT(answered(), SizeIs(2));
  EXPECT_EQ(waiting_for("api"), 0U);
}

// --- Limits of keys and throttles together.

// A job whose key has no room does not keep the token that came for it.
TEST_F(EngineThrottles, AKeyAtItsLimitKeepsNoTokenFromOthers) {
  configure({.lease = 1h, .concurrency_per_key = 1});
  set_empty("api", {1, 1s});
  push("throttled", needing({"api"}, "full"));
  EXPECT_THAT(claim_all(), IsEmpty());
  push("plain1", needing({}, "full"));
  push("plain2", needing({}, "full"));
  EXPECT_THAT(claim_all(), ElementsAre("plain1")) << "the key is full now";
  push("other", needing({"api"}, "free"));
  start_waiting(1);
  advance(1s);
  ticks_until_idle();
  EXPECT_THAT(answered(), ElementsAre("other"));
}

TEST_F(EngineThrottles, AKeyThatWasWokenAndThenFillsUpPassesItsTokenOn) {
  configure({.lease = 1h, .concurrency_per_key = 1});
  set_empty("api", {1, 1s});
  push("throttled", needing({"api"}, "full"));
  push("other", needing({"api"}, "free"));
  EXPECT_THAT(claim_all(), IsEmpty());
  advance(1s);  // one of them is woken, and nobody claims
  NewJob urgent = needing({}, "full");
  urgent.priority = 1;
  push("plain1", urgent);
  push("plain2", urgent);
  Names given = claim_all();
  ticks_until_idle();
  for (const std::string& name : claim_all()) given.push_back(name);
  std::ranges::sort(given);
  EXPECT_THAT(given, ElementsAre("other", "plain1"));
}

// --- What operators say.

TEST_F(EngineThrottles, ANewOneStartsFullAndAChangeKeepsWhatThereIs) {
  set("api", {1, 1h}, 5);
  EXPECT_EQ(tokens("api"), 5);
  push("a", needing({"api"}));
  claim_one();
  set("api", {2, 1h}, 50);
  EXPECT_EQ(tokens("api"), 4);
  set("api", {2, 1h}, 2);
  EXPECT_EQ(tokens("api"), 2);
}

TEST_F(EngineThrottles, UnsettingLetsWhatWaitedGoAtOnce) {
  set_empty("api", {1, 1h});
  for (int i = 0; i < 10; ++i) push("x", needing({"api"}, "k" + std::to_string(i)));
  start_waiting(1, {.max = 100});
  unset("api");
  ticks_until_idle();
  EXPECT_THAT(answered(), SizeIs(10));
  EXPECT_FALSE(engine_->throttle(kNs, "api", now()));
  EXPECT_TRUE(ledger_.throttles.empty());
}

TEST_F(EngineThrottles, AHigherRateIsNoticedByThoseWhoWait) {
  set_empty("api", {1, 1h});
  push("a", needing({"api"}));
  start_waiting(1);
  set("api", {1000, 1s}, 1);
  advance(1ms);
  ticks_until_idle();
  EXPECT_THAT(answered(), ElementsAre("a"));
}

TEST_F(EngineThrottles, ALowerRateHoldsForThoseWhoWait) {
  set_empty("api", {1000, 1s});
  push("a", needing({"api"}));
  start_waiting(1);
  set("api", {1, 1h}, 1);
  advance(30s);
  ticks_until_idle();
  EXPECT_THAT(answered(), IsEmpty());
}

TEST_F(EngineThrottles, HoldsForItsNamespaceOnly) {
  set_empty("api", {1, 1h});
  queue_ = {.ns = "elsewhere", .name = "orders"};
  configure({});
  push("a", needing({"api"}));
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(EngineThrottles, RefusesWhatDoesNotFit) {
  const auto too_long = try_set("api", {1, 24h * 30 + 1us}, 1);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, Errc::invalid_field);
  EXPECT_FALSE(engine_->throttle(kNs, "api", now()));
  EXPECT_TRUE(try_set("api", {1, 24h * 30}, 1));
  const auto unknown = engine_->unset_throttle(kNs, "apo", now());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::throttle_not_found);
}

TEST_F(EngineThrottles, ANamespaceHoldsAThousand) {
  for (std::size_t i = 0; i < kMaxThrottles; ++i) set("t" + std::to_string(i), {1, 1s}, 1);
  const auto refused = try_set("more", {1, 1s}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::too_many_throttles);
  EXPECT_TRUE(try_set("t5", {2, 1s}, 1)) << "one that is there may be changed";
  EXPECT_TRUE(engine_->set_throttle({.ns = "elsewhere", .key = "more"}, now()));
  unset("t5");
  EXPECT_TRUE(try_set("more", {1, 1s}, 1));
  EXPECT_THAT(engine_->list_throttles(kNs, now()), SizeIs(kMaxThrottles));
  EXPECT_THAT(engine_->list_throttles("", now()), SizeIs(kMaxThrottles + 1));
}

// --- Restarts.

TEST_F(EngineThrottles, ARestartNeitherForgetsWhatWasUsedNorAddsToIt) {
  set("api", {10, 1s}, 5);
  for (int i = 0; i < 20; ++i) push(std::to_string(i), needing({"api"}));
  EXPECT_THAT(claim(5), SizeIs(5));
  pass(250ms);
  restart();
  EXPECT_EQ(tokens("api"), 2.5) << "what came meanwhile";
  EXPECT_THAT(claim(20), SizeIs(2));
  restart();
  restart();
  EXPECT_EQ(tokens("api"), 0.5);
  EXPECT_THAT(claim(20), IsEmpty());
  advance(50ms);
  EXPECT_THAT(claim(20), SizeIs(1));
}

TEST_F(EngineThrottles, TheLevelIsStoredWithTheDelivery) {
  set("api", {10, 1s}, 5);
  push("a", needing({"api"}));
  engine_->seal(now());
  EXPECT_EQ(ledger_.throttles.at({kNs, "api"}).level.parts, 5'000'000U);
  claim_one();
  engine_->seal(now());
  EXPECT_EQ(ledger_.throttles.at({kNs, "api"}).level.parts, 4'000'000U);
  EXPECT_EQ(ledger_.throttles.at({kNs, "api"}).level.at, now());
}

TEST_F(EngineThrottles, ARestartBeforeAnythingIsUsedKeepsItFull) {
  set("api", {10, 1s}, 5);
  restart();
  EXPECT_EQ(tokens("api"), 5);
}

// --- Many keys.

TEST_F(EngineThrottles, AHundredThousandKeysThatWaitForOneHoldUpNobody) {
  constexpr std::uint64_t kLooksMax = 5'000;  // StepBudget's
  set_empty("api", {1, 24h});
  std::vector<Result<NewJob>> jobs;
  for (int i = 0; i < 100'000; ++i) jobs.emplace_back(needing({"api"}, std::to_string(i)));
  push_all(std::move(jobs));
  start_waiting(1);
  EXPECT_LE(waiting_for("api"), kLooksMax);
  std::uint64_t before = waiting_for("api");
  push("free", needing({}, "free"));
  EXPECT_LE(waiting_for("api") - before, kLooksMax);
  int ticks = 0;
  Names got;
  while (got.empty() && ticks < 30) {
    ASSERT_LE(engine_->next_wake(), now()) << "there is more to look at";
    before = waiting_for("api");
    tick();
    ++ticks;
    ASSERT_LE(waiting_for("api") - before, kLooksMax);
    got = answered();
  }
  EXPECT_THAT(got, ElementsAre("free"));
  EXPECT_EQ(waiting_for("api"), 100'000U);
  // From now on a claim costs nothing, and a token wakes one.
  start_waiting(2, {.wait = 48h});
  EXPECT_GT(engine_->next_wake(), now());
  advance(24h);
  ticks_until_idle();
  EXPECT_THAT(answers()[2], SizeIs(1));
  EXPECT_EQ(waiting_for("api"), 99'999U);
}

}  // namespace
}  // namespace reprise
