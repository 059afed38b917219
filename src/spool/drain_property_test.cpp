// Whatever an endpoint answers, sums are exact and nothing is lost.
#include <map>
#include <set>

#include "base/random.h"
#include "spool/drain.h"
#include "spool/event.h"
#include "support/drain_fixture.h"
#include "support/seeds.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using test::answer;
using test::DrainTest;
using test::Ids;
using test::no_answer;
using test::test_id;

// An endpoint that takes events, knows them again, and tells lies of every kind about it.
class Liar {
 public:
  explicit Liar(SeededRandom& random) : random_(random) {}

  IngestAnswer operator()(const Ids& ids) {
    switch (random_.below(9)) {
      case 0:
        return trouble(ids);
      case 1:
        return answer(random_.below(2) == 0 ? 400 : 422, refusal(ids));
      default:
        break;
    }
    std::set<std::string> clear;
    const std::string body = results(ids, clear);
    told_so.merge(clear);
    return answer(202, body);
  }

  std::set<std::string> taken;    // by the endpoint
  std::set<std::string> told_so;  // clearly told to have been taken

 private:
  // Sometimes it has taken them all the same.
  IngestAnswer trouble(const Ids& ids) {
    std::set<std::string> clear;
    if (random_.below(2) == 0) taken.insert(ids.begin(), ids.end());
    switch (random_.below(5)) {
      case 0:
        return no_answer();
      case 1:
        return answer(503, R"({"retry_after_seconds":3})");
      case 2:
        return answer(200, "<html>");
      case 3:
        return {.status = 429, .retry_after = std::chrono::seconds(random_.below(40))};
      default:
        return answer(200, results(ids, clear).substr(0, 20));
    }
  }

  std::string refusal(const Ids& ids) {
    std::string errors;
    for (std::uint64_t i = random_.below(4); i > 0; --i) {
      errors += fmt::format(R"({{"index":{},"error":"bad"}},)", random_.below(ids.size() + 3));
    }
    if (!errors.empty()) errors.pop_back();
    return R"({"errors":[)" + errors + "]}";
  }

  // `clear`: those that this reply, if it arrives, tells beyond doubt to have been taken.
  std::string results(const Ids& ids, std::set<std::string>& clear) {
    std::string entries;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint64_t dice = random_.below(12);
      if (dice == 0) continue;
      std::string status = "accepted";
      if (dice == 1 || dice == 2) status = "rejected";
      if (dice == 3) status = "deferred";
      const bool takes = status == "accepted";
      if (takes && !taken.insert(ids[i]).second) status = "duplicate";
      const std::size_t repeats = random_.below(20) == 0 ? 2 : 1;
      for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
        entries += fmt::format(R"({{"index":{},"status":"{}"}},)", i, status);
      }
      if (takes && repeats == 1) clear.insert(ids[i]);
    }
    if (random_.below(3) == 0) entries += R"({"index":1000,"status":"accepted"},)";
    if (random_.below(3) == 0) entries += R"({"index":-1,"status":"accepted"},7,)";
    if (!entries.empty()) entries.pop_back();
    return R"({"results":[)" + entries + "]}";
  }

  SeededRandom& random_;
};

std::uint64_t attempts_in(const std::filesystem::path& file) {
  const auto event = parse_event(test::read_file(file));
  return event ? event->attempts : 0;
}

TEST_F(DrainTest, WhateverTheRepliesTheSumsAreExactAndNothingIsLost) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(12); ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom dice(seed);
    std::filesystem::remove_all(queue_file(""));
    std::filesystem::remove_all(dead_file(""));
    files = make_spool(directory.path());
    Liar liar(dice);
    endpoint.script = [&](const Ids& ids) { return liar(ids); };
    options.batch = 1 + dice.below(30);
    options.max_attempts = static_cast<std::uint32_t>(1 + dice.below(4));

    const std::size_t count = dice.below(120);
    std::set<std::string> events;
    for (std::size_t i = 0; i < count; ++i) {
      if (dice.below(15) == 0) {
        put(test_id(i) + ".json", "{");
      } else {
        events.insert(put_event(i));
      }
    }
    std::uint64_t left = count;
    std::uint64_t gone = 0;
    for (int runs = 0; runs < 60 && left > 0; ++runs) {
      std::map<std::string, std::uint64_t> before;
      for (const auto& name : queued()) before[name] = attempts_in(queue_file(name));
      const DrainResult result = run();
      std::uint64_t counted = 0;
      for (const auto& name : queued()) {
        const std::uint64_t attempts = attempts_in(queue_file(name));
        ASSERT_LE(attempts, before[name] + 1);
        counted += attempts - before[name];
      }
      ASSERT_EQ(counted, result.retried);
      gone += result.accepted + result.duplicates + result.dead_lettered + result.corrupt;
      left = result.remaining;
      ASSERT_EQ(gone + left, count);
    }
    ASSERT_EQ(left, 0U);
    for (const std::string& id : events) {
      const bool is_dead = std::filesystem::exists(dead_file(id + ".json"));
      ASSERT_NE(is_dead, liar.told_so.contains(id)) << id;
    }
  }
}

}  // namespace
}  // namespace reprise::spool
