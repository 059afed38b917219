// A worker of an external queue on a loop and with commands that the test holds in its hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_clock.h"
#include "support/fake_step_runner.h"
#include "support/fake_worker_host.h"
#include "support/manual_loop.h"
#include "support/runbook_text.h"
#include "worker/worker.h"

namespace reprise::worker {

inline constexpr char kPollTimer[] = "queue-poll:shop/fixer";

// A project with one external queue and two workers of it.
inline std::string runbook_with(const std::string& poll, int concurrency) {
  return R"(
[queue.bugs]
type = "external"
list = "list"
take = "take ${item.id}"
done = "done"
failed = "failed"
timeout = "20s"
)" + (poll.empty() ? "" : "poll = \"" + poll + "\"") +
         R"(
[pipeline.fix]
on_cancel = "sweep"
[[pipeline.fix.step]]
name = "work"
run = "work ${item.id}"
[[pipeline.fix.step]]
name = "sweep"
run = "sweep"
[worker.fixer]
queue = "bugs"
run = "fix"
concurrency = )" +
         std::to_string(concurrency) + R"(
[worker.helper]
queue = "bugs"
run = "fix"
concurrency = )" +
         std::to_string(concurrency);
}

class ExternalWorkerFixture : public testing::Test {
 protected:
  using Keys = std::vector<std::string>;

  void SetUp() override { make(); }
  // A run and its worker hold each other until it ends.
  void TearDown() override {
    host_.let_notes_go();
    for (const auto& worker : made_) worker->shut_down();
    loop_.run();
    for (const StepId id : steps_.running()) steps_.exit(id, 1);
    loop_.run();
    EXPECT_TRUE(host_.runs.empty());
  }
  void make(const std::string& poll = "30s", int concurrency = 2) {
    book_ = test::runbook_from(runbook_with(poll, concurrency), "/project");
    worker_ = make_worker("fixer");
  }
  std::shared_ptr<Worker> make_worker(const std::string& name) {
    made_.push_back(make_external_worker(host_, book_, book_->workers.at(name), host_.log(name)));
    return made_.back();
  }
  // The runbook was edited.
  void declare(const std::string& poll, int concurrency) {
    book_ = test::runbook_from(runbook_with(poll, concurrency), "/project");
    worker_->declare(book_, book_->workers.at("fixer"));
    loop_.run();
  }
  void start() {
    worker_->start();
    loop_.run();
  }

  // --- What commands do; each is said to run first.
  void end(const std::string& script, const std::string& key, int code,
           const std::string& output = "") {
    const auto running = steps_.running(script, key);
    ASSERT_EQ(running.size(), 1U) << script << " " << key;
    steps_.exit(running[0], code, output, code == 0 ? "" : "it broke\n");
    loop_.run();
  }
  static std::string items(const Keys& keys) {
    std::string json = "[";
    for (const std::string& key : keys) json += (json.size() > 1 ? "," : "") + item(key);
    return json + "]";
  }
  static std::string item(const std::string& key) { return "{\"id\":" + key + "}"; }
  void listed(const Keys& keys) { end("list", "", 0, items(keys)); }
  void list_fails() { end("list", "", 1); }
  void taken(const std::string& key, int code = 0) { end("take", key, code); }
  void worked(const std::string& key, int code = 0) { end("work", key, code); }
  // Listed and taken; they run now.
  void run_items(const Keys& keys) {
    listed(keys);
    for (const std::string& key : keys) taken(key);
  }

  Keys jobs_of(const std::string& script) const {
    Keys keys;
    for (const StepId id : steps_.running(script)) {
      keys.push_back(steps_.variable(id, "REPRISE_JOB_ID").value_or("-"));
    }
    return keys;
  }
  bool lists() const { return !steps_.running("list").empty(); }
  std::optional<Duration> until_poll() const {
    const auto timers = loop_.timers(kPollTimer);
    if (timers.empty()) return std::nullopt;
    return timers[0].due - clock_.now();
  }
  std::string log() { return worker_->log().read({}).text; }

  test::FakeClock clock_;
  test::ManualLoop loop_{clock_};
  test::FakeStepRunner steps_;
  test::FakeWorkerHost host_{loop_, steps_};
  Book book_;
  std::shared_ptr<Worker> worker_;
  std::vector<std::shared_ptr<Worker>> made_;
  const QueueName kQueue{"shop", "bugs"};
};

}  // namespace reprise::worker
