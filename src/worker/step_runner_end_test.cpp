// How steps end: by themselves, stopped, with their supervisor, step host or server killed. Nothing
// of them may be left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/child_processes.h"
#include "support/step_recorder.h"
#include "support/temp_directory.h"
#include "worker/step_runner.h"

namespace reprise::worker {
namespace {

using namespace std::chrono_literals;
using test::processes_with;
using test::StepRecorder;
using test::wait_until;
using testing::AnyOf;
using testing::HasSubstr;

// Sleepers that do not want to end: in the group, in a session of their own, without a parent,
// without pipes, deaf to SIGTERM and SIGHUP. Says "up" when all of them are there.
const std::string kDaemons = R"bash(
export list=$(mktemp -p .)
export sleeper='echo >> $list; exec sleep 1000'
export loop='echo >> $list; while :; do sleep 1000; done'
bash -c "$sleeper" &
setsid bash -c "$sleeper" &
(setsid nohup bash -c "$sleeper" > /dev/null 2>&1 < /dev/null &)
(trap '' TERM HUP INT; (setsid bash -c "$loop" &) &)
nohup bash -c "$loop" 2> /dev/null &
until [ "$(wc -l < $list)" = 5 ]; do sleep 0.01; done
echo up
)bash";
constexpr std::size_t kDaemonProcesses = 8;  // with bash itself, and two that loop over sleep

class StepEndTest : public testing::Test {
 protected:
  void SetUp() override { runner = make_runner(); }

  std::unique_ptr<StepRunner> make_runner() {
    auto made = StepRunner::make(
        {.lock_file = directory_ / "lock", .grace = grace_, .warn = [this](std::string_view text) {
           const std::lock_guard lock(mutex_);
           warnings_ += text;
         }});
    EXPECT_TRUE(made) << made.error().detail;
    return std::move(*made);
  }
  StepSpec spec(std::string script) {
    return {.script = std::move(script),
            .directory = directory_.path(),
            .environment = {"PATH=/usr/bin:/bin", mark_}};
  }
  std::shared_ptr<StepRecorder> start(std::string script) {
    auto recorder = std::make_shared<StepRecorder>();
    last_id_ = runner->start(spec(std::move(script)), recorder);
    return recorder;
  }
  std::shared_ptr<StepRecorder> start_and_see(std::string script) {
    auto step = start(std::move(script));
    EXPECT_TRUE(step->wait_for_output("up"));
    return step;
  }
  pid_t host() {
    std::vector<pid_t> children;
    EXPECT_TRUE(wait_until([&] {
      children = test::children_of(getpid());
      return children.size() == 1;
    }));
    return children.at(0);
  }
  std::string warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  const test::TempDirectory directory_;
  const std::string mark_ = test::make_mark();
  Duration grace_ = 300ms;
  std::mutex mutex_;
  std::string warnings_;
  StepId last_id_ = 0;
  std::unique_ptr<StepRunner> runner;
};

// --- by themselves -----------------------------------------------------------------------------

TEST_F(StepEndTest, WhatAStepHasStartedEndsWithIt) {
  const auto step = start(kDaemons + "exit 5");
  EXPECT_EQ(step->wait(), "exited 5");
  EXPECT_EQ(step->out(), "up\n");
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
}

TEST_F(StepEndTest, APipeThatIsHeldOpenDelaysNothing) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(start("(setsid sleep 1000 &); sleep 1000 & echo x")->wait(), "exited 0");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(StepEndTest, ProcessesThatForkAndEndAllTheTimeDoNotEscape) {
  const auto step = start(
      "for i in 1 2 3; do\n"
      "perl -MPOSIX -e 'fork and exit; while (1) { setsid(); fork and exit }' > /dev/null 2>&1 &\n"
      "done\n"
      "bash -c 'f() { sleep 0.001; f & }; f' > /dev/null 2>&1 &\n"
      "sleep 0.2");
  EXPECT_EQ(step->wait(), "exited 0");
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
}

// --- stopped -----------------------------------------------------------------------------------

TEST_F(StepEndTest, StoppedGentlyItMayTidyUp) {
  const auto step = start_and_see("trap 'echo tidied; exit 9' TERM; echo up; sleep 1000 & wait");
  runner->stop(last_id_, StopManner::gently);
  EXPECT_EQ(step->wait(), "exited 9");
  EXPECT_EQ(step->out(), "up\ntidied\n");
}

TEST_F(StepEndTest, StoppedGentlyItEndsAtOnceIfItDoesNotMind) {
  grace_ = 1h;
  runner = nullptr;
  runner = make_runner();
  const auto step = start_and_see("setsid sleep 1000 & echo up; sleep 1000");
  runner->stop(last_id_, StopManner::gently);
  EXPECT_EQ(step->wait(), "signalled 15");
}

TEST_F(StepEndTest, StoppedGentlyWhatItRunsMayTidyUpToo) {
  grace_ = 1h;
  runner = nullptr;
  runner = make_runner();
  // Bash itself ends at once.
  const auto step = start_and_see(
      "bash -c 'trap \"sleep 0.2; echo tidied; exit\" TERM; echo up; sleep 1000 & wait'; true");
  runner->stop(last_id_, StopManner::gently);
  EXPECT_EQ(step->wait(), "signalled 15");
  EXPECT_EQ(step->out(), "up\ntidied\n");
}

TEST_F(StepEndTest, StoppedGentlyItIsKilledAfterTheGrace) {
  const auto step = start_and_see("trap '' TERM; " + kDaemons + "while :; do sleep 1; done");
  const auto begin = std::chrono::steady_clock::now();
  runner->stop(last_id_, StopManner::gently);
  EXPECT_EQ(step->wait(), "signalled 9");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
}

TEST_F(StepEndTest, AStoppedProcessIsWokenToHearIt) {
  grace_ = 1h;
  runner = nullptr;
  runner = make_runner();
  const auto step = start_and_see("trap 'exit 8' TERM; echo up; kill -STOP $$; sleep 1000");
  EXPECT_TRUE(wait_until([&] {
    return std::ranges::any_of(processes_with(mark_),
                               [](pid_t pid) { return test::state_of(pid) == 'T'; });
  }));
  runner->stop(last_id_, StopManner::gently);
  EXPECT_EQ(step->wait(), "exited 8");
}

TEST_F(StepEndTest, StoppedAtOnceItIsKilled) {
  const auto step = start_and_see("trap '' TERM; " + kDaemons + "sleep 1000");
  runner->stop(last_id_, StopManner::gently);
  runner->stop(last_id_, StopManner::at_once);
  EXPECT_EQ(step->wait(), "signalled 9");
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
  runner->stop(last_id_, StopManner::at_once);  // long gone
  runner->stop(12345, StopManner::gently);
  EXPECT_EQ(start("true")->wait(), "exited 0");
  EXPECT_EQ(step->ends(), 1);
}

TEST_F(StepEndTest, MayBeStoppedAtAnyMoment) {
  std::vector<std::shared_ptr<StepRecorder>> steps;
  for (int i = 0; i < 200; ++i) {
    steps.push_back(start("(setsid sleep 1000 &); sleep 1000"));
    const StopManner manner = i % 2 == 0 ? StopManner::at_once : StopManner::gently;
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 50));
    runner->stop(last_id_, manner);
  }
  for (const auto& step : steps) {
    EXPECT_THAT(step->wait(), AnyOf("not started", "signalled 9", "signalled 15"));
    EXPECT_EQ(step->ends(), 1);
  }
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
}

TEST_F(StepEndTest, TheRunnerEndsWithAllItHas) {
  std::vector<std::shared_ptr<StepRecorder>> steps;
  for (int i = 0; i < 10; ++i)
    steps.push_back(start_and_see("trap '' TERM; " + kDaemons + "sleep 1000"));
  for (int i = 0; i < 100; ++i) steps.push_back(start("sleep 1000"));
  const auto begin = std::chrono::steady_clock::now();
  runner = nullptr;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 9s);
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
  EXPECT_THAT(test::children_of(getpid()), testing::IsEmpty());
  for (const auto& step : steps) EXPECT_EQ(step->ends(), 1);
  EXPECT_EQ(warnings(), "");
}

// --- killed ------------------------------------------------------------------------------------

TEST_F(StepEndTest, OfAKilledSupervisorNothingIsLeft) {
  const auto other = start_and_see("echo up; sleep 0.5; echo done");
  const auto step = start_and_see(kDaemons + "sleep 1000");
  const auto supervisors = test::children_of(host());
  ASSERT_EQ(supervisors.size(), 2U);
  for (const pid_t supervisor : supervisors) {
    const auto below = test::children_of(supervisor);
    if (below.size() > 1) kill(supervisor, SIGKILL);  // the one with daemons
  }
  EXPECT_EQ(step->wait(), "lost");
  EXPECT_EQ(step->detail(), "its supervisor was killed");
  EXPECT_EQ(other->wait(), "exited 0");
  EXPECT_EQ(other->out(), "up\ndone\n");
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
  EXPECT_EQ(start("true")->wait(), "exited 0");
}

TEST_F(StepEndTest, OfAKilledStepHostNothingIsLeftAndAnotherIsStarted) {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<StepRecorder>> steps;
    for (int i = 0; i < 5; ++i) steps.push_back(start_and_see(kDaemons + "sleep 1000"));
    kill(host(), SIGKILL);
    for (const auto& step : steps) EXPECT_EQ(step->wait(), "lost");
    EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
    EXPECT_EQ(start("echo $PPID")->wait(), "exited 0");
  }
  EXPECT_THAT(warnings(), HasSubstr("the step host has ended; its steps are lost"));
}

TEST_F(StepEndTest, StepsOnTheirWayToAKilledStepHostHearOfIt) {
  std::vector<std::shared_ptr<StepRecorder>> steps;
  const pid_t pid = host();
  for (int i = 0; i < 200; ++i) {
    steps.push_back(start("sleep 0.01"));
    if (i == 100) kill(pid, SIGKILL);
  }
  for (const auto& step : steps) {
    EXPECT_THAT(step->wait(), AnyOf("exited 0", "lost"));
    EXPECT_EQ(step->ends(), 1);
  }
}

TEST_F(StepEndTest, SignalsThatAreForTheServerDoNotEndItsHelpers) {
  const auto step = start_and_see("echo up; sleep 0.3; echo done");
  const pid_t pid = host();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) {
    kill(pid, signal);
    for (const pid_t supervisor : test::children_of(pid)) kill(supervisor, signal);
  }
  EXPECT_EQ(step->wait(), "exited 0");
  EXPECT_EQ(host(), pid);
}

TEST_F(StepEndTest, AStepCannotStopItsSupervisor) {
  const auto step = start_and_see("echo up; kill -STOP $PPID; " + kDaemons + "sleep 1000");
  runner->stop(last_id_, StopManner::at_once);
  EXPECT_EQ(step->wait(), "signalled 9");
  EXPECT_THAT(processes_with(mark_), testing::IsEmpty());
}

TEST_F(StepEndTest, AStoppedStepHostGoesOnWhenItIsNeeded) {
  ASSERT_EQ(start("true")->wait(), "exited 0");
  const pid_t pid = host();
  for (int i = 0; i < 2; ++i) {
    kill(pid, SIGSTOP);
    EXPECT_TRUE(wait_until([&] { return test::state_of(pid) == 'T'; }));
    if (i == 0) {
      EXPECT_EQ(start("true")->wait(), "exited 0");
    }
  }
  runner = nullptr;
  EXPECT_THAT(test::children_of(getpid()), testing::IsEmpty());
  EXPECT_EQ(warnings(), "");
}

TEST_F(StepEndTest, SupervisorsAreNotCalledByTheNameOfTheServer) {
  const auto step = start_and_see("echo up; sleep 1000");
  std::ifstream file("/proc/" + std::to_string(test::children_of(host()).at(0)) + "/cmdline");
  std::string text;
  std::getline(file, text, '\0');
  EXPECT_EQ(text, "step-supervisor");
}

TEST_F(StepEndTest, NothingOutlivesAServerThatIsKilled) {
  runner = nullptr;
  for (const bool with_step_host : {false, true}) {
    const test::ChildProcess server(
        {"run-steps", directory_ / "lock", mark_, kDaemons + "sleep 1000"});
    ASSERT_TRUE(
        wait_until([&] { return processes_with(mark_).size() >= 5 * kDaemonProcesses; }, 60s));
    const auto hosts = test::children_of(server.pid());
    ASSERT_EQ(hosts.size(), 1U);
    // Helpers that do not run for some reason are no excuse.
    for (const pid_t supervisor : test::children_of(hosts[0])) kill(supervisor, SIGSTOP);
    kill(hosts[0], SIGSTOP);
    kill(server.pid(), SIGKILL);
    if (with_step_host) kill(hosts[0], SIGKILL);
    EXPECT_TRUE(wait_until([&] { return processes_with(mark_).empty(); }));
    EXPECT_TRUE(wait_until([&] { return !test::is_alive(hosts[0]); }));
  }
}

TEST_F(StepEndTest, TheNextServerWaitsForTheStepsOfTheFormer) {
  runner = nullptr;
  for (int round = 0; round < 3; ++round) {
    const test::ChildProcess server(
        {"run-steps", directory_ / "lock", mark_, kDaemons + "sleep 1000"});
    ASSERT_TRUE(
        wait_until([&] { return processes_with(mark_).size() >= 5 * kDaemonProcesses; }, 60s));
    const auto next = make_runner();
    std::promise<std::size_t> left;
    next->when_ready([&] { left.set_value(processes_with(mark_).size()); });
    auto step = std::make_shared<StepRecorder>();
    next->start({.script = "echo $$", .directory = "/"}, step);
    auto ready = left.get_future();
    EXPECT_EQ(ready.wait_for(100ms), std::future_status::timeout);
    EXPECT_FALSE(step->ended());
    kill(server.pid(), SIGKILL);
    ASSERT_EQ(ready.wait_for(60s), std::future_status::ready);
    EXPECT_EQ(ready.get(), 0U);
    EXPECT_EQ(step->wait(), "exited 0");
  }
}

TEST_F(StepEndTest, AServerThatWaitsForAnotherCanEnd) {
  ASSERT_EQ(start("true")->wait(), "exited 0");
  auto second = make_runner();
  auto step = std::make_shared<StepRecorder>();
  second->start(spec("true"), step);
  EXPECT_TRUE(wait_until([&] { return test::children_of(getpid()).size() == 2; }));
  second = nullptr;
  EXPECT_EQ(step->wait(), "not started");
  EXPECT_EQ(step->detail(), "the server is shutting down");
}

}  // namespace
}  // namespace reprise::worker
