#include "hooks/hook_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/child_processes.h"

// Hosts here are scripted (support/scripted_host.h): a message's error says what to do with it.
namespace reprise::hooks {
namespace {

using namespace std::chrono_literals;
using test::children_of;
using test::wait_until;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kFailure = HookKind::on_failure;
constexpr auto kEnqueue = HookKind::on_enqueue;

HookMessage make_message(std::string order, std::string payload = "{}") {
  auto record = std::make_shared<JobRecord>();
  record->payload = std::move(payload);
  return {.job = std::move(record), .id = "id", .failures = 1, .error = std::move(order)};
}

std::string text_of(const HookOutcome& outcome) {
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) {
    return std::string(hook_fault_name(failure->fault)) + ": " + failure->message;
  }
  if (const auto* verdict = std::get_if<FailureVerdict>(&outcome)) {
    return verdict->retry ? "retry" : "dead " + verdict->reason;
  }
  const auto& verdict = std::get<EnqueueVerdict>(outcome);
  return "weight " + std::to_string(verdict.weight.value_or(0));
}

class HookRunnerTest : public testing::Test {
 protected:
  HookRunnerTest() {
    options.program = scripted_host_.path();
    options.on_results = [this](std::vector<HookResult> results) {
      const std::lock_guard lock(mutex_);
      for (HookResult& result : results) {
        order_.push_back(result.id);
        EXPECT_TRUE(results_.emplace(result.id, std::move(result.outcome)).second)
            << "two answers for call " << result.id;
      }
      changed_.notify_all();
    };
    options.on_log = [this](const QueueName& queue, HookKind hook, std::string_view text) {
      const std::lock_guard lock(mutex_);
      log_.push_back(queue.name + " " + std::string(hook_name(hook)) + ": " + std::string(text));
      changed_.notify_all();
    };
    options.on_notice = [this](std::string_view text) {
      const std::lock_guard lock(mutex_);
      notices_.emplace_back(text);
    };
  }

  HookRunner& runner() {
    if (!runner_) runner_ = HookRunner::start(options);
    return *runner_;
  }
  void stop() { runner_.reset(); }

  static HookDefinition definition(QueueNumber queue, std::string source = "any",
                                   Duration timeout = 200ms) {
    return {.queue = queue,
            .name = {.name = "q" + std::to_string(queue)},
            .sources = {source, source},
            .limits = {.timeout = timeout}};
  }
  void define(QueueNumber queue, std::string source = "any", Duration timeout = 200ms) {
    runner().submit({definition(queue, std::move(source), timeout)});
  }
  HookCall make_call(QueueNumber queue, std::string order, HookKind hook = kFailure) {
    return {
        .id = ++last_id_, .queue = queue, .hook = hook, .message = make_message(std::move(order))};
  }
  HookCallId submit_call(QueueNumber queue, std::string order, HookKind hook = kFailure) {
    runner().submit({make_call(queue, std::move(order), hook)});
    return last_id_;
  }
  // What is submitted in one go goes to the host in batches.
  std::vector<HookCallId> submit_calls(QueueNumber queue, const std::vector<std::string>& orders) {
    std::vector<HookWork> work;
    std::vector<HookCallId> ids;
    for (const std::string& order : orders) {
      work.emplace_back(make_call(queue, order));
      ids.push_back(last_id_);
    }
    runner().submit(std::move(work));
    return ids;
  }

  bool wait_for(const std::function<bool()>& condition) {  // under mutex_
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, condition);
  }
  std::string result_of(HookCallId id) {
    if (!wait_for([&] { return results_.contains(id); })) return "no answer";
    const std::lock_guard lock(mutex_);
    return text_of(results_.at(id));
  }
  std::string ask(QueueNumber queue, std::string order, HookKind hook = kFailure) {
    return result_of(submit_call(queue, std::move(order), hook));
  }
  pid_t pid_of_host(QueueNumber queue) {
    const std::string result = ask(queue, "pid");
    EXPECT_THAT(result, StartsWith("dead "));
    return std::stoi(result.substr(5));
  }
  // For longer than it could take it to do anything else.
  static void wait_until_looping(pid_t host) {
    const auto before = test::cpu_time_of(host);
    EXPECT_TRUE(wait_until([&] { return test::cpu_time_of(host) > before + 20ms; }));
  }
  bool is_answered(HookCallId id) {
    const std::lock_guard lock(mutex_);
    return results_.contains(id);
  }
  std::vector<HookCallId> order_of_results() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  Result<std::vector<TrialResult>> try_script(ScriptTrial trial) {
    std::promise<Result<std::vector<TrialResult>>> promise;
    runner().try_script(std::move(trial),
                        [&](auto result) { promise.set_value(std::move(result)); });
    return promise.get_future().get();
  }
  static ScriptTrial trial(std::string source, const std::vector<std::string>& orders = {},
                           Duration timeout = 200ms) {
    ScriptTrial result{.queue = {.name = "tried"},
                       .hook = kFailure,
                       .source = std::move(source),
                       .limits = {.timeout = timeout}};
    for (const std::string& order : orders) result.messages.push_back(make_message(order));
    return result;
  }
  static pid_t only_nursery() {
    const auto children = children_of(getpid());
    EXPECT_EQ(children.size(), 1U);
    return children.empty() ? 0 : children.front();
  }

  const test::OwnProgramAs scripted_host_{"scripted-host"};
  HookRunnerOptions options;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<HookCallId, HookOutcome> results_;
  std::vector<HookCallId> order_;
  std::vector<std::string> log_;
  std::vector<std::string> notices_;
  HookCallId last_id_ = 0;
  std::unique_ptr<HookRunner> runner_;  // last: its callbacks use the others
};

TEST_F(HookRunnerTest, AnswersCallsInOrder) {
  define(1);
  std::vector<HookCallId> ids;
  for (int round = 0; round < 5; ++round) {
    for (const HookCallId id : submit_calls(1, std::vector<std::string>(100, ""))) {
      ids.push_back(id);
    }
  }
  EXPECT_EQ(result_of(ids.back()), "retry");
  EXPECT_EQ(order_of_results(), ids);
  EXPECT_EQ(runner().metrics().started, 1U);
  EXPECT_EQ(runner().metrics().hosts, 1U);
}

TEST_F(HookRunnerTest, AsksBothHooksOfAQueueInOneHost) {
  define(1);
  const HookCallId first = submit_call(1, "", kEnqueue);
  EXPECT_EQ(ask(1, ""), "retry");
  EXPECT_EQ(result_of(first), "weight 7");
  EXPECT_EQ(runner().metrics().started, 1U);
}

TEST_F(HookRunnerTest, AnErrorOfTheScriptIsPassedOn) {
  define(1);
  EXPECT_EQ(ask(1, "fail"), "error: line 1: as ordered");
  EXPECT_EQ(runner().metrics().killed, 0U);
}

TEST_F(HookRunnerTest, ACallOfAQueueWithoutHooksIsAnErrorAtOnce) {
  EXPECT_EQ(ask(1, ""), "error: the queue has no on_failure");
  HookDefinition only_enqueue = definition(1);
  only_enqueue.sources[static_cast<std::size_t>(kFailure)].clear();
  runner().submit({only_enqueue});
  EXPECT_EQ(ask(1, ""), "error: the queue has no on_failure");
  EXPECT_EQ(ask(1, "", kEnqueue), "weight 7");
}

TEST_F(HookRunnerTest, SendsPayloadsToThoseWhoNameThemOrAsk) {
  define(1, "does not name it");
  EXPECT_EQ(ask(1, "payload"), "dead {}");
  define(2, "uses msg.payload");
  EXPECT_EQ(ask(2, "payload"), "dead {}");
}

// --- Time.

TEST_F(HookRunnerTest, ACallThatTakesTooLongIsStoppedAndItsNeighboursAreAskedAgain) {
  define(1, "any", 20ms);
  const auto ids = submit_calls(1, {"", "loop", ""});
  EXPECT_EQ(result_of(ids[1]), "timeout: on_failure took longer than 20ms and was stopped");
  EXPECT_EQ(result_of(ids[0]), "retry");
  EXPECT_EQ(result_of(ids[2]), "retry");
  EXPECT_EQ(runner().metrics().killed, 1U);
  EXPECT_EQ(runner().metrics().lost, 0U);
}

TEST_F(HookRunnerTest, AThousandCallsEveryTenthLooping) {
  define(1, "any", 5ms);
  std::vector<std::string> orders;
  for (int i = 0; i < 1000; ++i) orders.emplace_back(i % 10 == 3 ? "loop" : "");
  const auto ids = submit_calls(1, orders);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string result = result_of(ids[i]);
    if (orders[i] == "loop") {
      EXPECT_THAT(result, StartsWith("timeout: ")) << i;
    } else {
      EXPECT_EQ(result, "retry") << i;
    }
  }
  EXPECT_GE(runner().metrics().killed, 100U);
  // A breaker that heard of the failures first would take them for failures in a row.
  EXPECT_EQ(order_of_results(), ids);
}

TEST_F(HookRunnerTest, ALoopingScriptDelaysNoOtherQueue) {
  define(1, "any", 500ms);
  define(2);
  EXPECT_EQ(ask(2, ""), "retry");
  const HookCallId looping = submit_call(1, "loop");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(2, ""), "retry");
  EXPECT_FALSE(is_answered(looping)) << "twenty calls took longer than half a second";
  EXPECT_THAT(result_of(looping), StartsWith("timeout: "));
}

TEST_F(HookRunnerTest, ACallThatWaitsInsteadOfRunningGetsTwiceItsTime) {
  define(1, "any", 200ms);
  EXPECT_EQ(ask(1, "sleep 260"), "retry");
  EXPECT_THAT(ask(1, "sleep 5000"), StartsWith("timeout: "));
}

TEST_F(HookRunnerTest, ABatchMayNotTakeLongerThanItsCallsWhateverThePageSays) {
  define(1, "any", 5ms);
  for (const char* order : {"false page", "hidden hang"}) {
    EXPECT_EQ(ask(1, order), "host_lost: on_failure: its process did not answer in time");
  }
  EXPECT_EQ(runner().metrics().started, 6U) << "three tries each";
  EXPECT_EQ(runner().metrics().killed, 6U);
  EXPECT_EQ(ask(1, ""), "retry");
}

// --- Hosts that end or talk nonsense.

TEST_F(HookRunnerTest, AHostThatEndsTakesOnlyTheRunningCallWithIt) {
  define(1);
  const auto ids = submit_calls(1, {"", "abort", "", "exit", ""});
  EXPECT_EQ(result_of(ids[1]), "host_lost: on_failure: its process was ended by SIGABRT");
  EXPECT_EQ(result_of(ids[3]), "host_lost: on_failure: its process exited with status 7");
  for (const std::size_t i : {0U, 2U, 4U}) EXPECT_EQ(result_of(ids[i]), "retry");
  EXPECT_EQ(runner().metrics().lost, 2U);
}

TEST_F(HookRunnerTest, AHostThatEndsBetweenCallsIsTriedThreeTimes) {
  define(1);
  EXPECT_EQ(ask(1, "silent exit"), "host_lost: on_failure: its process exited with status 0");
  EXPECT_EQ(runner().metrics().started, 3U);
  EXPECT_EQ(ask(1, ""), "retry");
}

TEST_F(HookRunnerTest, NonsenseEndsTheHostAndItsBatch) {
  define(1);
  for (const char* order : {"garbage", "wrong batch", "wrong place", "wrong type", "too many"}) {
    EXPECT_EQ(ask(1, order), "host_lost: on_failure: its process answered nonsense") << order;
    EXPECT_EQ(ask(1, ""), "retry") << order;
  }
  EXPECT_EQ(runner().metrics().lost, 5U);
}

TEST_F(HookRunnerTest, AHostKilledInMidCallIsReplaced) {
  define(1, "any", 60s);
  const pid_t host = pid_of_host(1);
  const auto ids = submit_calls(1, {"loop", ""});
  wait_until_looping(host);
  ::kill(host, SIGKILL);
  EXPECT_EQ(result_of(ids[0]), "host_lost: on_failure: its process was ended by SIGKILL");
  EXPECT_EQ(result_of(ids[1]), "retry");
  EXPECT_NE(pid_of_host(1), host);
}

TEST_F(HookRunnerTest, ANurseryThatIsKilledIsReplaced) {
  define(1, "any", 1s);
  define(2, "any", 1s);
  const pid_t old_host = pid_of_host(1);
  EXPECT_EQ(ask(2, ""), "retry");
  const pid_t nursery = only_nursery();
  ::kill(nursery, SIGKILL);
  EXPECT_TRUE(wait_until([&] { return !test::is_alive(old_host); }));
  for (const QueueNumber queue : {1U, 2U}) {
    // The first may have been on its way to a host that was ending.
    const std::string first = ask(queue, "");
    EXPECT_TRUE(first == "retry" || first.starts_with("host_lost")) << first;
    EXPECT_EQ(ask(queue, ""), "retry");
  }
  EXPECT_NE(only_nursery(), nursery);
}

TEST_F(HookRunnerTest, WithoutANurseryCallsAreAnsweredAllTheSame) {
  options.program = "/nonexistent/reprise";
  define(1);
  EXPECT_THAT(ask(1, ""),
              StartsWith("host_lost: on_failure: its process cannot be started: /nonexistent/"));
  const auto tried = try_script(trial("any"));
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().code, Errc::hooks_unavailable);
}

TEST_F(HookRunnerTest, AProgramThatIsNoNurseryIsNoEndlessLoop) {
  options.program = "/bin/true";
  define(1);
  EXPECT_THAT(ask(1, ""), StartsWith("host_lost: "));
  EXPECT_EQ(runner().metrics().started, 0U);
}

TEST_F(HookRunnerTest, AHundredKillsLeaveNoDescriptorsBehind) {
  define(1, "any", 1ms);
  EXPECT_THAT(ask(1, "loop"), StartsWith("timeout: "));
  EXPECT_EQ(ask(1, ""), "retry");
  const std::size_t before = test::open_descriptors();
  for (const HookCallId id : submit_calls(1, std::vector<std::string>(100, "loop"))) {
    EXPECT_THAT(result_of(id), StartsWith("timeout: "));
  }
  EXPECT_EQ(ask(1, ""), "retry");
  EXPECT_EQ(test::open_descriptors(), before);
  EXPECT_EQ(children_of(only_nursery()).size(), 1U) << "the others are reaped";
}

// --- Definitions.

TEST_F(HookRunnerTest, ACallRunsWithTheScriptItWasSubmittedUnder) {
  runner().submit({definition(1, "old"), make_call(1, "script"), definition(1, "new"),
                   make_call(1, "script"), definition(1, "newer"), make_call(1, "script")});
  EXPECT_EQ(result_of(1), "dead old");
  EXPECT_EQ(result_of(2), "dead new");
  EXPECT_EQ(result_of(3), "dead newer");
}

TEST_F(HookRunnerTest, TheSameDefinitionAgainChangesNothing) {
  define(1);
  const pid_t host = pid_of_host(1);
  define(1);
  EXPECT_EQ(pid_of_host(1), host);
  define(1, "any", 300ms);
  EXPECT_NE(pid_of_host(1), host) << "limits are a part of it";
}

TEST_F(HookRunnerTest, ADefinitionWithoutHooksEndsTheHostAfterItsCalls) {
  define(1);
  const pid_t host = pid_of_host(1);
  const HookCallId last = submit_call(1, "sleep 30");
  runner().submit({HookDefinition{.queue = 1, .name = {.name = "q1"}}});
  EXPECT_EQ(result_of(last), "retry");
  EXPECT_TRUE(wait_until([&] { return !test::is_alive(host); }));
  EXPECT_THAT(ask(1, ""), HasSubstr("has no on_failure"));
}

TEST_F(HookRunnerTest, AStoredScriptThatDoesNotLoadIsAnErrorOfItsCalls) {
  HookDefinition mixed = definition(1);
  mixed.sources[static_cast<std::size_t>(kFailure)] = "problem at load";
  runner().submit({mixed});
  EXPECT_EQ(ask(1, ""), "error: line 3: a problem");
  EXPECT_EQ(ask(1, "", kEnqueue), "weight 7");
  EXPECT_EQ(runner().metrics().started, 1U);
}

TEST_F(HookRunnerTest, AScriptThatCannotBeSetUpIsGivenUpAfterThreeTries) {
  define(1, "exit at load", 5ms);
  define(2, "nonsense at load", 5ms);
  EXPECT_EQ(ask(1, ""), "host_lost: on_failure: its process exited with status 9");
  EXPECT_EQ(ask(2, ""), "host_lost: on_failure: its process answered nonsense");
  EXPECT_EQ(runner().metrics().started, 6U);
  define(1);
  EXPECT_EQ(ask(1, ""), "retry");
}

TEST_F(HookRunnerTest, AbandonedCallsAreNotAnswered) {
  define(1, "any", 60s);
  const pid_t host = pid_of_host(1);
  const std::vector<HookCallId> abandoned = submit_calls(1, {"loop", "", ""});
  const HookCallId other = submit_call(1, "", kEnqueue);
  wait_until_looping(host);
  runner().submit({AbandonedHook{.queue = 1, .hook = kFailure}});
  EXPECT_EQ(result_of(other), "weight 7") << "asked again";
  EXPECT_EQ(ask(1, ""), "retry");
  for (const HookCallId id : abandoned) EXPECT_FALSE(is_answered(id));
  EXPECT_EQ(runner().metrics().killed, 0U);
  EXPECT_EQ(runner().metrics().lost, 0U);
}

// --- Config.

TEST_F(HookRunnerTest, ConfigIsVisibleToTheNextCall) {
  const auto set = [&](std::string ns, std::optional<std::string> value) {
    runner().submit({ConfigChange{.ns = std::move(ns), .key = "k", .value = std::move(value)}});
  };
  set("default", "before");
  set("elsewhere", "theirs");
  define(1);
  EXPECT_EQ(ask(1, "config k"), "dead before") << "a new host gets what there is";
  for (int i = 0; i < 50; ++i) {
    set("default", std::to_string(i));
    set("elsewhere", "theirs");
    EXPECT_EQ(ask(1, "config k"), "dead " + std::to_string(i));
  }
  set("default", std::nullopt);
  EXPECT_EQ(ask(1, "config k"), "dead nil");
}

// --- Hosts and their number.

TEST_F(HookRunnerTest, TheHostThatWasIdleForLongestMakesRoom) {
  options.max_hosts = 2;
  for (const QueueNumber queue : {1U, 2U, 3U}) define(queue);
  const pid_t first = pid_of_host(1);
  const pid_t second = pid_of_host(2);
  EXPECT_EQ(pid_of_host(1), first);
  EXPECT_EQ(ask(3, ""), "retry");
  EXPECT_FALSE(test::is_alive(second));
  EXPECT_EQ(pid_of_host(1), first);
  EXPECT_LE(runner().metrics().hosts, 2U);
}

TEST_F(HookRunnerTest, QueuesTakeTurnsWhenAllHostsAreBusy) {
  options.max_hosts = 1;
  for (QueueNumber queue = 1; queue <= 3; ++queue) define(queue);
  std::vector<HookCallId> ids = submit_calls(1, std::vector<std::string>(500, "sleep 1"));
  const HookCallId second = submit_call(2, "");
  const HookCallId third = submit_call(3, "");
  EXPECT_EQ(result_of(second), "retry");
  EXPECT_FALSE(is_answered(ids.back())) << "it did not wait for all of the first queue's";
  EXPECT_EQ(result_of(third), "retry");
  EXPECT_EQ(result_of(ids.back()), "retry");
  const auto order = order_of_results();
  EXPECT_LT(std::ranges::find(order, second), std::ranges::find(order, third));
}

TEST_F(HookRunnerTest, ABatchOfSlowCallsMakesRoomToo) {
  options.max_hosts = 1;
  define(1, "any", 100ms);
  define(2);
  const auto slow = submit_calls(1, std::vector<std::string>(60, "sleep 40"));
  EXPECT_EQ(result_of(submit_call(2, "")), "retry");
  EXPECT_FALSE(is_answered(slow.back())) << "two seconds of another queue's calls came first";
  for (const HookCallId id : slow) EXPECT_EQ(result_of(id), "retry");
}

TEST_F(HookRunnerTest, ATrialHasATimeForAllOfIt) {
  options.trial_time = 200ms;
  const auto tried = try_script(trial("any", std::vector<std::string>(100, "sleep 50"), 100ms));
  ASSERT_FALSE(tried);
  EXPECT_THAT(tried.error().detail, HasSubstr("took longer than 200ms for all"));
  EXPECT_TRUE(try_script(trial("any")));
}

TEST_F(HookRunnerTest, AnIdleHostEndsAfterAWhile) {
  options.end_idle_after = 50ms;
  define(1);
  const pid_t host = pid_of_host(1);
  EXPECT_TRUE(wait_until([&] { return !test::is_alive(host); }));
  EXPECT_EQ(ask(1, ""), "retry");
}

// --- Logs.

TEST_F(HookRunnerTest, LogsAreBoundedPerSecondAndQueue) {
  define(1);
  define(2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(1, "log 8"), "retry");
  EXPECT_EQ(ask(2, "log 1"), "retry");
  ASSERT_TRUE(wait_for([&] {
    return std::ranges::any_of(log_,
                               [](const auto& line) { return line.ends_with("were left out"); });
  }));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(std::ranges::count(log_, "q2 on_failure: line 0"), 1);
  EXPECT_EQ(log_.front(), "q1 on_failure: line 0");
  EXPECT_EQ(log_.back(), "q1 on_failure: 20 more lines were left out");
}

// --- Trials.

TEST_F(HookRunnerTest, TriesAScriptInAHostOfItsOwn) {
  runner().submit({ConfigChange{.ns = "default", .key = "k", .value = "v"}});
  const auto tried =
      try_script(trial("tried script", {"script", "config k", "log 2", "fail", "payload"}));
  ASSERT_TRUE(tried);
  std::vector<std::string> texts;
  for (const TrialResult& result : *tried) texts.push_back(text_of(result.outcome));
  EXPECT_THAT(texts, ElementsAre("dead tried script", "dead v", "retry",
                                 "error: line 1: as ordered", "dead {}"));
  EXPECT_THAT((*tried)[2].log, ElementsAre("line 0", "line 1"));
  EXPECT_TRUE(wait_until([&] { return runner().metrics().hosts == 0; }));
}

TEST_F(HookRunnerTest, ATrialSurvivesTheCallsThatDoNot) {
  const auto tried = try_script(trial("any", {"", "loop", "abort", ""}, 20ms));
  ASSERT_TRUE(tried);
  std::vector<std::string> texts;
  for (const TrialResult& result : *tried) texts.push_back(text_of(result.outcome));
  EXPECT_THAT(texts,
              ElementsAre("retry", StartsWith("timeout: "), StartsWith("host_lost: "), "retry"));
}

TEST_F(HookRunnerTest, ATrialWithoutMessagesTellsWhetherTheScriptCanBeUsed) {
  EXPECT_TRUE(try_script(trial("any")));
  const auto error_of = [&](std::string source) {
    const auto tried = try_script(trial(std::move(source), {}, 10ms));
    if (tried) return std::string("usable");
    EXPECT_EQ(tried.error().code, Errc::invalid_script);
    return tried.error().detail;
  };
  EXPECT_EQ(error_of("problem at load"), "on_failure: line 3: a problem");
  EXPECT_EQ(error_of("loop at load"), "on_failure: took longer than 500ms while it was loaded");
  EXPECT_EQ(error_of("exit at load"),
            "on_failure: its process exited with status 9 while it was loaded");
  EXPECT_EQ(error_of("nonsense at load"),
            "on_failure: its process answered nonsense while it was loaded");
}

TEST_F(HookRunnerTest, FourTrialsRunAHundredWaitAndNoMore) {
  std::atomic<int> overloaded = 0;
  std::atomic<int> stopped = 0;
  for (int i = 0; i < 120; ++i) {
    runner().try_script(trial("loop at load", {}, 1s), [&](auto result) {
      ASSERT_FALSE(result);
      if (result.error().code == Errc::overloaded) ++overloaded;
      if (result.error().code == Errc::shutting_down) ++stopped;
    });
  }
  EXPECT_TRUE(wait_until([&] { return overloaded == 16; }));
  EXPECT_TRUE(wait_until([&] { return runner().metrics().hosts == 4; }));
  runner().stop();
  EXPECT_EQ(stopped, 104);
  runner().try_script(trial("any"), [&](auto) { ++stopped; });
  EXPECT_EQ(stopped, 105);
}

// --- The end.

TEST_F(HookRunnerTest, StopsWithCallsInFlightAndLeavesNoProcess) {
  define(1, "any", 60s);
  define(2, "any", 60s);
  const pid_t host = pid_of_host(1);
  EXPECT_EQ(ask(2, ""), "retry");
  const HookCallId looping = submit_call(1, "loop");
  const pid_t nursery = only_nursery();
  const auto begin = std::chrono::steady_clock::now();
  runner().stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_FALSE(is_answered(looping));
  EXPECT_FALSE(test::is_alive(host));
  EXPECT_FALSE(test::is_alive(nursery));
  runner().stop();
  runner().submit({make_call(1, "")});
}

TEST_F(HookRunnerTest, StartsNoProcessBeforeItNeedsOne) {
  define(1);
  runner().submit({ConfigChange{.ns = "default", .key = "k", .value = "v"}});
  runner().stop();
  EXPECT_EQ(runner().metrics().started, 0U);
}

TEST_F(HookRunnerTest, ProcessesEndWithTheirBrokerWhateverEndsIt) {
  test::ChildProcess broker({"run-hooks", options.program});
  std::vector<pid_t> family;
  ASSERT_TRUE(wait_until([&] {
    family = children_of(broker.pid());
    if (family.size() != 1) return false;
    for (const pid_t host : children_of(family.front())) family.push_back(host);
    return family.size() == 3;
  }));
  ::kill(broker.pid(), SIGKILL);
  for (const pid_t pid : family) {
    EXPECT_TRUE(wait_until([&] { return !test::is_alive(pid); })) << pid;
  }
}

}  // namespace
}  // namespace reprise::hooks
