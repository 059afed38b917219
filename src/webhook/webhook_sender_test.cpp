#include "webhook/webhook_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "support/webhook_receiver.h"

namespace reprise::webhook {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::WebhookReceiver;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Deaths in memory. It answers on a thread of its own, as the broker does.
class FakeOutbox final : public Outbox {
 public:
  FakeOutbox() : thread_([this] { run(); }) {}
  ~FakeOutbox() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void add(WebhookKey key, const std::string& url) {
    const std::lock_guard lock(mutex_);
    deaths_[key] = url;
  }
  void fail_next(int calls) {
    const std::lock_guard lock(mutex_);
    to_fail_ = calls;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return deaths_.size();
  }
  // False: it is not after ten seconds.
  bool wait_until_empty() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, [&] { return deaths_.empty(); });
  }

  void pending(std::optional<WebhookKey> after, std::uint32_t limit,
               Done<std::vector<PendingWebhook>> done) override {
    do_later([this, after, limit, done = std::move(done)]() mutable { done(page(after, limit)); });
  }
  void finish(std::vector<WebhookKey> keys, Done<std::uint64_t> done) override {
    do_later(
        [this, keys = std::move(keys), done = std::move(done)]() mutable { done(remove(keys)); });
  }

 private:
  void do_later(absl::AnyInvocable<void()> what) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(what));
    }
    changed_.notify_all();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  bool refuses() {
    if (to_fail_ == 0) return false;
    --to_fail_;
    return true;
  }
  Result<std::vector<PendingWebhook>> page(std::optional<WebhookKey> after, std::uint32_t limit) {
    const std::lock_guard lock(mutex_);
    if (refuses()) return Error{Errc::overloaded, "too much"};
    std::vector<PendingWebhook> found;
    auto at = after ? deaths_.upper_bound(*after) : deaths_.begin();
    for (; at != deaths_.end() && found.size() < limit; ++at) {
      found.push_back({.key = at->first,
                       .queue = {"default", "orders"},
                       .url = at->second,
                       .record = record_,
                       .state = std::make_shared<const JobState>()});
    }
    return found;
  }
  Result<std::uint64_t> remove(const std::vector<WebhookKey>& keys) {
    std::uint64_t removed = 0;
    const std::lock_guard lock(mutex_);
    if (refuses()) return Error{Errc::overloaded, "too much"};
    for (const WebhookKey& key : keys) removed += deaths_.erase(key);
    changed_.notify_all();
    return removed;
  }

  const RecordPtr record_ = [] {
    JobRecord record;
    record.payload = "1";
    return std::make_shared<const JobRecord>(record);
  }();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<WebhookKey, std::string> deaths_;
  std::deque<absl::AnyInvocable<void()>> tasks_;
  int to_fail_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

class Sender : public testing::Test {
 protected:
  WebhookSender& start() {
    options_.info = [this](std::string_view text) { log(text); };
    options_.warn = [this](std::string_view text) { log(text); };
    sender_.emplace(outbox_, clock_, options_);
    return *sender_;
  }
  void log(std::string_view text) {
    const std::lock_guard lock(mutex_);
    log_.emplace_back(text);
  }
  std::vector<std::string> logged() {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  WebhookKey death(Seq seq) const { return {.died_at = died_at_, .queue = 1, .seq = seq}; }
  void die(Seq first, Seq last, const std::string& url) {
    for (Seq seq = first; seq <= last; ++seq) outbox_.add(death(seq), url);
  }

  SteadyWallClock clock_;
  const Timestamp died_at_ = clock_.now();
  std::mutex mutex_;
  std::vector<std::string> log_;
  FakeOutbox outbox_;
  WebhookSenderOptions options_{.retry = {.first = 10ms, .longest = 40ms}, .poll_every = 50ms};
  std::optional<WebhookSender> sender_;
};

// False: it did not come true within ten seconds.
bool wait_for(const std::function<bool()>& condition) {
  const auto patience = steady_clock::now() + 10s;
  while (!condition() && steady_clock::now() < patience) std::this_thread::sleep_for(2ms);
  return condition();
}

std::string subject(const test::ReceivedRequest& request) {
  const auto event = Json::parse(request.body);
  const std::string* text = event ? (*event)["subject"].string() : nullptr;
  return text != nullptr ? *text : "none";
}

TEST_F(Sender, TellsWhatIsInTheOutbox) {
  WebhookReceiver receiver;
  die(1, 3, receiver.url());
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  std::set<std::string> subjects;
  for (const auto& request : receiver.requests()) subjects.insert(subject(request));
  EXPECT_EQ(subjects,
            (std::set<std::string>{encode_job_id(1), encode_job_id(2), encode_job_id(3)}));
  sender_->stop();
  EXPECT_EQ(sender_->stats().delivered, 3U);
  EXPECT_EQ(sender_->stats().failed, 0U);
}

TEST_F(Sender, IsWokenForANewDeath) {
  options_.poll_every = 1h;
  WebhookReceiver receiver;
  start();
  std::this_thread::sleep_for(50ms);  // it has seen that there is nothing
  die(1, 1, receiver.url());
  sender_->wake();
  EXPECT_TRUE(receiver.wait_for(1));
}

TEST_F(Sender, FindsANewDeathByItself) {
  WebhookReceiver receiver;
  start();
  std::this_thread::sleep_for(20ms);
  outbox_.add({.died_at = clock_.now(), .queue = 1, .seq = 1}, receiver.url());
  EXPECT_TRUE(receiver.wait_for(1));
}

TEST_F(Sender, ThousandsAreToldOnceEach) {
  WebhookReceiver receiver;
  die(1, 3000, receiver.url());
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  std::set<std::string> subjects;
  for (const auto& request : receiver.requests()) subjects.insert(subject(request));
  EXPECT_EQ(subjects.size(), 3000U);
  EXPECT_EQ(receiver.requests().size(), 3000U);
  EXPECT_LE(receiver.most_at_once(), DeliveryPlan::kPerAddress);
}

TEST_F(Sender, AFailureIsRepeatedWithTheSameBytesUntilItIsAccepted) {
  int answers = 0;
  WebhookReceiver receiver(
      [&](const auto&) { return WebhookReceiver::status(++answers < 4 ? 500 : 200); });
  die(1, 1, receiver.url("/secret"));
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  sender_->stop();
  const auto requests = receiver.requests();
  ASSERT_EQ(requests.size(), 4U);
  for (const auto& request : requests) EXPECT_EQ(request.body, requests.front().body);
  EXPECT_EQ(sender_->stats().failed, 3U);
  EXPECT_EQ(sender_->stats().delivered, 1U);
  const std::string origin = receiver.url("");
  EXPECT_THAT(logged(),
              ElementsAre("the webhook at " + origin + " fails: HTTP 500; it is tried again",
                          "the webhook at " + origin + " works again"));
}

TEST_F(Sender, ADeathIsGivenUpInTheEnd) {
  options_.retry.give_up_after = 100ms;
  WebhookReceiver receiver([](const auto&) { return WebhookReceiver::status(410); });
  die(1, 1, receiver.url());
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  sender_->stop();
  EXPECT_EQ(sender_->stats().given_up, 1U);
  EXPECT_EQ(sender_->stats().delivered, 0U);
  EXPECT_EQ(sender_->stats().pending, 0U);
  EXPECT_EQ(logged().back(),
            "gave up telling " + receiver.url("") +
                ", which fails, of 1 deaths older than 100ms: " + encode_job_id(1));
}

TEST_F(Sender, AnOldDeathIsGivenUpAfterOneTry) {
  options_.retry = {.first = 1s, .longest = 10s, .give_up_after = 0s};
  WebhookReceiver receiver([](const auto&) { return WebhookReceiver::status(410); });
  die(1, 1, receiver.url());
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  EXPECT_EQ(receiver.requests().size(), 1U);
  EXPECT_THAT(logged().back(), HasSubstr("gave up telling " + receiver.url("") + " that job " +
                                         encode_job_id(1) + " of default/orders died at"));
}

TEST_F(Sender, ABacklogIsGivenUpWhenItsAddressIsDownForGood) {
  options_.retry.give_up_after = 200ms;
  WebhookReceiver receiver;
  receiver.close();
  die(1, 1000, receiver.url());
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  sender_->stop();
  EXPECT_EQ(sender_->stats().given_up, 1000U);
  EXPECT_EQ(sender_->stats().pending, 0U);
  EXPECT_THAT(logged(), Contains(HasSubstr(" and others")));
  EXPECT_LT(logged().size(), 500U);
}

TEST_F(Sender, WithoutAnAddressThereIsNothingToSend) {
  die(1, 500, "");
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  EXPECT_EQ(sender_->stats().delivered, 0U);
}

TEST_F(Sender, AnAddressThatNeverAnswersHoldsUpNobody) {
  WebhookReceiver silent([](const auto&) { return std::string(); });
  WebhookReceiver receiver;
  die(1, 400, silent.url());
  die(401, 500, receiver.url());
  start();
  EXPECT_TRUE(wait_for([&] { return sender_->stats().delivered == 100; }));
  const auto began = steady_clock::now();
  sender_->stop();
  EXPECT_LT(steady_clock::now() - began, 2s);
  EXPECT_TRUE(wait_for([&] { return outbox_.size() == 400; })) << "what nobody answered stays";
  // What is left out may have been met more than once before a pass has counted it.
  EXPECT_GE(sender_->stats().pending, 400U);
}

TEST_F(Sender, AnotherAddressIsTakenFromTheNextTryOn) {
  WebhookReceiver wrong([](const auto&) { return WebhookReceiver::status(404); });
  WebhookReceiver right;
  die(1, 1, wrong.url());
  start();
  EXPECT_TRUE(wrong.wait_for(2));
  die(1, 1, right.url());
  EXPECT_TRUE(outbox_.wait_until_empty());
  EXPECT_EQ(right.requests().size(), 1U);
}

TEST_F(Sender, WhatWasDeletedIsNotTriedAgain) {
  WebhookReceiver receiver([](const auto&) { return WebhookReceiver::status(500); });
  die(1, 1, receiver.url());
  start();
  EXPECT_TRUE(receiver.wait_for(1));
  outbox_.finish({death(1)}, [](Result<std::uint64_t>) {});
  EXPECT_TRUE(outbox_.wait_until_empty());
  EXPECT_TRUE(wait_for([&] { return sender_->stats().pending == 0; }));
}

TEST_F(Sender, AnOutboxThatRefusesIsAskedAgainAndNothingIsToldTwice) {
  WebhookReceiver receiver([this](const auto&) {
    outbox_.fail_next(2);  // one of them is the finish of this one
    return WebhookReceiver::status(200);
  });
  die(1, 1, receiver.url());
  outbox_.fail_next(1);
  start();
  EXPECT_TRUE(outbox_.wait_until_empty());
  EXPECT_EQ(receiver.requests().size(), 1U);
}

TEST_F(Sender, StopsAtOnceWhenIdle) {
  options_.poll_every = 1h;
  start();
  const auto began = steady_clock::now();
  sender_->stop();
  sender_->stop();
  EXPECT_LT(steady_clock::now() - began, 2s);
}

}  // namespace
}  // namespace reprise::webhook
