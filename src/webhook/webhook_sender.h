// WebhookSender: tells deaths to the addresses of their queues, from a thread of its own.
//
// The outbox is the truth: a death leaves it once its address has answered with a 2xx, or when it
// was tried for three days. What is in memory is bounded (DeliveryPlan) and may be lost at any
// time: after a restart everything that is still in the outbox is tried again. So a death is told
// at least once, with the same id each time.
//
// Threads: all methods from any thread. Log functions are called on the sender's thread.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "model/webhook.h"
#include "webhook/delivery_plan.h"
#include "webhook/outbox.h"

namespace reprise::webhook {

struct WebhookSenderOptions {
  RetrySchedule retry;
  // How often the outbox is looked at without a wake().
  Duration poll_every = std::chrono::seconds(5);
  // Addresses are told without their path and query, which may be secrets. Empty: nobody listens.
  std::function<void(std::string_view)> info;
  std::function<void(std::string_view)> warn;
};

class WebhookSender {
 public:
  // Starts. `clock` is the one that stamps deaths; it and the outbox must outlive the sender.
  WebhookSender(Outbox& outbox, const Clock& clock, WebhookSenderOptions options);
  ~WebhookSender();  // stops first
  WebhookSender(const WebhookSender&) = delete;
  WebhookSender& operator=(const WebhookSender&) = delete;

  // Something was put into the outbox. Cheap, and harmless when it is not true.
  void wake();
  WebhookStats stats() const;

  // Drops the requests under way and joins the thread; takes milliseconds. What was told already
  // leaves the outbox, if that still takes commands: stop the sender before the broker.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::webhook
