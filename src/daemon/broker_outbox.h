// BrokerOutbox: the deaths that the broker has stored for webhooks, as their sender wants them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "broker/broker.h"
#include "webhook/outbox.h"

namespace reprise::daemon {

class BrokerOutbox final : public webhook::Outbox {
 public:
  explicit BrokerOutbox(Broker& broker) : broker_(broker) {}

  void pending(std::optional<WebhookKey> after, std::uint32_t limit,
               Done<std::vector<PendingWebhook>> done) override {
    broker_.pending_webhooks(after, limit, std::move(done));
  }
  void finish(std::vector<WebhookKey> keys, Done<std::uint64_t> done) override {
    broker_.finish_webhooks(std::move(keys), std::move(done));
  }

 private:
  Broker& broker_;
};

}  // namespace reprise::daemon
