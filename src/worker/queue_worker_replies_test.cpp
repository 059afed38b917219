// A worker of a stored queue with a broker that answers as it was told.
#include <deque>
#include <string>

#include "support/fake_broker.h"
#include "support/queue_worker_fixture.h"

namespace reprise::worker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

class QueueWorkerRepliesTest : public QueueWorkerFixture {
 protected:
  void SetUp() override { make("30s", 2); }
  Broker& broker() override { return broker_; }

  // The worker has it, and its step runs.
  void give(Seq seq) {
    ASSERT_TRUE(broker_.wait_for_waiting_claims(1));
    ClaimedJob job = test::claimed_job(seq, "{}");
    job.lease_deadline = clock_.now() + lease_;
    broker_.answer_claim(ClaimReply{{job}});
    step(encode_job_id(seq));
  }

  test::FakeBroker broker_;
  Duration lease_ = hours(3);
};

TEST_F(QueueWorkerRepliesTest, AsksForAsManyAsAreFreeInItsName) {
  start();
  give(1);
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.claims.size() == 2; }));
  broker_.with_lock([](const auto& asked) {
    EXPECT_EQ(asked.claims[0].queue, kOrders);
    EXPECT_EQ(asked.claims[0].max, 2U);
    EXPECT_EQ(asked.claims[0].worker, "shipper");
    EXPECT_EQ(asked.claims[1].max, 1U);
  });
}

TEST_F(QueueWorkerRepliesTest, AsksAgainWhenAClaimWaitedInVain) {
  start();
  ASSERT_TRUE(broker_.wait_for_waiting_claims(1));
  broker_.answer_claim(ClaimReply{});
  EXPECT_TRUE(broker_.wait_for([](const auto& asked) { return asked.claims.size() == 2; }));
}

TEST_F(QueueWorkerRepliesTest, AResizeReplacesTheClaimThatWaits) {
  start();
  ASSERT_TRUE(broker_.wait_for_waiting_claims(1));
  on_loop([&] { worker_->resize(5); });
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.claims.size() == 2; }));
  broker_.with_lock([](const auto& asked) {
    EXPECT_EQ(asked.cancelled.size(), 1U);
    EXPECT_EQ(asked.claims[1].max, 5U);
  });
}

TEST_F(QueueWorkerRepliesTest, WhatComesAfterTheStopIsGivenBackAsUndelivered) {
  start();
  ASSERT_TRUE(broker_.wait_for_waiting_claims(1));
  on_loop([&] {
    broker_.answer_claim(ClaimReply{{test::claimed_job(1)}});
    worker_->stop(false);
  });
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.releases.size() == 1; }));
  broker_.with_lock([](const auto& asked) { EXPECT_TRUE(asked.releases[0].undelivered); });
  EXPECT_EQ(steps_.started(), 0U);
}

TEST_F(QueueWorkerRepliesTest, WhatComesAfterAResizeIsNotMoreThanItsSlots) {
  start();
  ASSERT_TRUE(broker_.wait_for_waiting_claims(1));
  on_loop([&] {
    ClaimReply reply{{test::claimed_job(1), test::claimed_job(2)}};
    for (ClaimedJob& job : reply.jobs) job.lease_deadline = clock_.now() + lease_;
    broker_.answer_claim(std::move(reply));
    worker_->resize(1);
  });
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.releases.size() == 1; }));
  broker_.with_lock([](const auto& asked) { EXPECT_TRUE(asked.releases[0].undelivered); });
  step(encode_job_id(1));
  EXPECT_EQ(view().active, 1U);
}

TEST_F(QueueWorkerRepliesTest, AResultThatCannotBeTakenNowIsToldAgain) {
  start();
  give(1);
  broker_.with_lock([&](const auto&) {
    broker_.refusals = {Error{Errc::overloaded, "later"}, Error{Errc::hooks_unavailable, "later"}};
  });
  steps_.exit(step());
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.acks.size() == 3; }));
  ASSERT_TRUE(eventually([&] { return view().active == 0; }));
  EXPECT_EQ(view().last_error, "");
  EXPECT_TRUE(read([&] { return host_->runs.empty(); }));
}

TEST_F(QueueWorkerRepliesTest, ARefusedFailureIsToldAgainAsItWas) {
  start();
  give(1);
  broker_.with_lock([&](const auto&) { broker_.refusals = {Error{Errc::overloaded, "later"}}; });
  steps_.exit(step(), 4);
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.fails.size() == 2; }));
  broker_.with_lock([](const auto& asked) {
    EXPECT_EQ(asked.fails[1].error, "step pick: exit code 4");
    EXPECT_EQ(asked.fails[1].error_type, "exit_4");
    EXPECT_FALSE(asked.fails[1].final);
  });
}

TEST_F(QueueWorkerRepliesTest, AResultThatComesTooLateMakesTheRunLostAndTheSlotIsFree) {
  start();
  give(1);
  broker_.with_lock([&](const auto&) {
    broker_.refusals = {Error{Errc::lease_lost, "it has expired"}};
  });
  steps_.exit(step());
  ASSERT_TRUE(eventually([&] { return view().active == 0; }));
  EXPECT_EQ(read([&] { return host_->store().list({}).front().status; }), RunStatus::lost);
  EXPECT_EQ(broker_.with_lock([](const auto& asked) { return asked.acks.size(); }), 1U);
  EXPECT_TRUE(read([&] { return host_->runs.empty(); }));
}

TEST_F(QueueWorkerRepliesTest, ABrokerThatStopsIsNotAskedAgain) {
  start();
  give(1);
  broker_.with_lock([&](const auto&) {
    broker_.refusals = {Error{Errc::shutting_down, "stopping"}};
  });
  steps_.exit(step());
  ASSERT_TRUE(eventually([&] { return view().active == 0; }));
  EXPECT_EQ(broker_.with_lock([](const auto& asked) { return asked.acks.size(); }), 1U);
  EXPECT_TRUE(read([&] { return host_->runs.empty(); }));
}

TEST_F(QueueWorkerRepliesTest, AnExtensionThatCannotBeTakenNowIsAskedForAgain) {
  lease_ = milliseconds(300);
  start();
  broker_.with_lock([&](const auto&) {
    broker_.extension_refusals = {Error{Errc::overloaded, "later"}};
  });
  give(1);
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return asked.extensions.size() >= 2; }));
  EXPECT_EQ(steps_.running().size(), 1U);
}

TEST_F(QueueWorkerRepliesTest, ALeaseThatIsLostEndsTheRun) {
  lease_ = milliseconds(60);
  start();
  broker_.with_lock([&](const auto&) {
    broker_.extension_refusals = {Error{Errc::lease_lost, "gone"}};
  });
  give(1);
  ASSERT_TRUE(runs(0));
  ASSERT_TRUE(eventually([&] { return view().active == 0; }));
  broker_.with_lock([](const auto& asked) {
    EXPECT_TRUE(asked.acks.empty());
    EXPECT_TRUE(asked.fails.empty());
  });
}

TEST_F(QueueWorkerRepliesTest, TheLeaseIsKeptUntilTheResultWasTaken) {
  lease_ = milliseconds(60);
  start();
  give(1);
  broker_.with_lock([&](const auto&) {
    broker_.refusals = std::deque<Error>(1000, Error{Errc::overloaded, "later"});
  });
  steps_.exit(step());
  ASSERT_TRUE(broker_.wait_for([](const auto& asked) { return !asked.acks.empty(); }));
  const auto before = broker_.with_lock([](const auto& asked) { return asked.extensions.size(); });
  EXPECT_TRUE(
      broker_.wait_for([&](const auto& asked) { return asked.extensions.size() >= before + 3; }));
  broker_.with_lock([&](const auto&) { broker_.refusals.clear(); });
  ASSERT_TRUE(eventually([&] { return view().active == 0; }));
  EXPECT_TRUE(read([&] { return loop_.timers("extend:").empty(); }));
}

}  // namespace
}  // namespace reprise::worker
