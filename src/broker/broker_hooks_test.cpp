// The broker with real hooks in real processes. This program is also what it starts for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string_view>

#include "broker/broker.h"
#include "hooks/hook_host_main.h"
#include "storage/memory/memory_storage.h"

namespace reprise {
namespace {

using testing::StartsWith;

const QueueName kQueue{.name = "orders"};

constexpr const char* kOnEnqueue = R"(
function on_enqueue(msg)
  if msg.headers.tenant == "nobody" then return { reject = "no such tenant" } end
  return { fairness_key = msg.headers.tenant, weight = 2 }
end)";
constexpr const char* kOnFailure = R"(
function on_failure(msg)
  if msg.error == "hang" then return { reason = ("a"):rep(50000):find((".-"):rep(12) .. "b") } end
  if msg.error == "later" then return { delay_ms = 60000 } end
  return { action = "dlq", reason = config.get("word") or "none" }
end)";

class BrokerHooks : public testing::Test {
 protected:
  BrokerHooks() {
    options.limits.hook_timeout_ms = 200;  // for machines that are busy
    broker = *Broker::open(storage, clock, random, options);
    QueueConfig config;
    config.hooks = {kOnEnqueue, kOnFailure};
    config.on_hook_error = OnHookError::dlq;
    const auto made = call<PutQueueReply>([&](auto done) {
      broker->put_queue({.queue = kQueue, .config = config}, std::move(done));
    });
    EXPECT_TRUE(made) << made.error().detail;
  }

  template <class T, class Call>
  std::future<Result<T>> start(const Call& call) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    call(Done<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
    return promise->get_future();
  }
  template <class T, class Call>
  Result<T> call(const Call& call) {
    return start<T>(call).get();
  }
  std::future<Result<PushReply>> start_push(int jobs, const std::string& tenant) {
    PushCommand command{.queue = kQueue};
    for (int i = 0; i < jobs; ++i) {
      command.jobs.emplace_back(
          NewJob{.payload = std::to_string(i), .headers = {{"tenant", tenant}}});
    }
    return start<PushReply>([&](auto done) { broker->push(std::move(command), std::move(done)); });
  }
  std::vector<ClaimedJob> claim(std::uint32_t most) {
    return call<ClaimReply>([&](auto done) {
             broker->claim({.queue = kQueue, .max = most, .wait = std::chrono::seconds(20)},
                           std::move(done));
           })
        ->jobs;
  }
  std::future<Result<ItemResults<Failed>>> start_fail(const std::vector<ClaimedJob>& jobs,
                                                      const std::string& error) {
    std::vector<FailItem> items;
    for (const ClaimedJob& job : jobs) items.push_back({.token = job.token, .error = error});
    return start<ItemResults<Failed>>(
        [&](auto done) { broker->fail(std::move(items), std::move(done)); });
  }

  std::unique_ptr<storage::Storage> storage_owner = storage::make_memory_storage();
  storage::Storage& storage = *storage_owner;
  SteadyWallClock clock;
  SeededRandom random{7};
  BrokerOptions options;
  std::unique_ptr<Broker> broker;
};

// Many at once, so that answers come while others are written and asked.
TEST_F(BrokerHooks, PushesAndFailuresAreDecided) {
  std::vector<std::future<Result<PushReply>>> pushes;
  for (int i = 0; i < 40; ++i) pushes.push_back(start_push(25, "t" + std::to_string(i)));
  auto refused = start_push(1, "nobody");
  for (auto& push : pushes) {
    const auto reply = push.get();
    ASSERT_TRUE(reply);
    for (const auto& result : reply->results) EXPECT_TRUE(result) << result.error().detail;
  }
  EXPECT_EQ(refused.get()->results[0].error().code, Errc::hook_rejected);

  std::vector<std::future<Result<ItemResults<Failed>>>> fails;
  for (int left = 1000; left > 0;) {
    const auto jobs = claim(50);
    ASSERT_FALSE(jobs.empty());
    for (const ClaimedJob& job : jobs) {
      EXPECT_EQ(job.record->scheduling.weight, 2U);
      EXPECT_THAT(job.record->scheduling.fairness_key, StartsWith("t"));
    }
    left -= static_cast<int>(jobs.size());
    fails.push_back(start_fail(jobs, left % 100 == 0 ? "later" : "boom"));
  }
  for (auto& fail : fails) {
    const auto results = fail.get();
    ASSERT_TRUE(results);
    for (const auto& result : *results) {
      ASSERT_TRUE(result) << result.error().detail;
      if (result->status == JobStatus::dead) {
        EXPECT_EQ(result->death_note, "none");
      }
    }
  }
}

TEST_F(BrokerHooks, ACallThatHangsIsDecidedWithoutItsHook) {
  ASSERT_TRUE(start_push(3, "t").get());
  const auto jobs = claim(3);
  const auto hung = start_fail({jobs[0]}, "hang").get();
  EXPECT_EQ(hung->at(0)->reason, DeathReason::hook_error);
  ASSERT_TRUE(call<ConfigEntry>([&](auto done) {
    broker->set_config({.ns = "default", .key = "word", .value = "known"}, std::move(done));
  }));
  EXPECT_EQ(start_fail({jobs[1]}, "boom").get()->at(0)->death_note, "known");
  EXPECT_GE(broker->metrics().hook_hosts_killed, 1U);
}

TEST_F(BrokerHooks, AScriptThatCannotBeUsedChangesNothing) {
  const auto edited = call<QueueStats>([&](auto done) {
    broker->edit_queue(
        kQueue,
        [](QueueConfig& config) {
          config.hooks[1] = "function on_failure(msg";
          return ok();
        },
        std::move(done));
  });
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code, Errc::invalid_script);
  EXPECT_THAT(edited.error().detail, StartsWith("on_failure: line 1: "));
  ASSERT_TRUE(start_push(1, "t").get());
  EXPECT_EQ(start_fail(claim(1), "boom").get()->at(0)->death_note, "none");
}

TEST_F(BrokerHooks, WhoWaitsForAHookIsAnsweredWhenItStops) {
  ASSERT_TRUE(start_push(1, "t").get());
  auto hung = start_fail(claim(1), "hang");
  broker->stop();
  const auto results = hung.get();
  // It may have been decided just before.
  if (results && results->at(0)) {
    EXPECT_EQ(results->at(0)->reason, DeathReason::hook_error);
  } else {
    EXPECT_EQ(results ? results->at(0).error().code : results.error().code, Errc::shutting_down);
  }
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "hook-host") {
    return reprise::hooks::hook_host_main();
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
