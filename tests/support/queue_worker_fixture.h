// A worker of a stored queue, on a loop with a thread of its own and with steps that the test holds
// in its hand. Which broker it claims from is the test's choice.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "support/fake_step_runner.h"
#include "support/fake_worker_host.h"
#include "support/runbook_text.h"
#include "worker/worker.h"

namespace reprise::worker {

inline const QueueName kOrders{"shop", "orders"};

// Waits as long as it takes, within reason.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::string orders_runbook(const std::string& lease, int concurrency) {
  return R"(
[queue.orders]
type = "persisted"
vars = []
retry = { attempts = 3, cooldown = "1h" }
lease = ")" +
         lease + R"("
[pipeline.ship]
[[pipeline.ship.step]]
name = "pick"
run = "pick"
[worker.shipper]
queue = "orders"
run = "ship"
concurrency = )" +
         std::to_string(concurrency);
}

class QueueWorkerFixture : public testing::Test {
 protected:
  virtual Broker& broker() = 0;

  void make(const std::string& lease, int concurrency) {
    book_ = test::runbook_from(orders_runbook(lease, concurrency));
    host_ = std::make_unique<test::FakeWorkerHost>(loop_, steps_, &broker());
    worker_ = make_queue_worker(*host_, book_, book_->workers.at("shipper"), host_->log("shipper"));
  }
  template <class Call>
  auto read(Call call) {
    std::promise<decltype(call())> promise;
    loop_.post([&] { promise.set_value(call()); });
    return promise.get_future().get();
  }
  template <class Call>
  void on_loop(Call call) {
    read([&] {
      call();
      return 0;
    });
  }
  void TearDown() override {
    if (worker_) {
      on_loop([&] { worker_->shut_down(); });
      EXPECT_TRUE(eventually([&] { return read([&] { return host_->runs.empty(); }); }));
    }
    loop_.stop();
    broker().stop();
    worker_.reset();
    host_.reset();
  }

  void start() {
    on_loop([&] { worker_->start(); });
  }
  WorkerView view() {
    return read([&] { return worker_->view(); });
  }
  bool becomes(WorkerStatus status) {
    return eventually([&] { return view().status == status; });
  }
  bool runs(std::size_t count) {
    return eventually([&] { return steps_.running("pick").size() == count; });
  }
  // The step that runs for a job, or any.
  StepId step(const std::string& job = "") {
    EXPECT_TRUE(eventually([&] { return !steps_.running("pick", job).empty(); })) << job;
    const auto running = steps_.running("pick", job);
    return running.empty() ? 0 : running[0];
  }

  SteadyWallClock clock_;
  test::FakeStepRunner steps_;
  ThreadLoop loop_{clock_};
  Book book_;
  std::unique_ptr<test::FakeWorkerHost> host_;
  std::shared_ptr<Worker> worker_;
};

}  // namespace reprise::worker
