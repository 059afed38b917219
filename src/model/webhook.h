// Webhooks: deaths that are still to be told to a queue's `on_dead_webhook` address.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

// One death: a job can die, be brought back and die again. In the order of dying.
struct WebhookKey {
  Timestamp died_at{};
  QueueNumber queue{};
  Seq seq{};
  friend auto operator<=>(const WebhookKey&, const WebhookKey&) = default;
};

struct PendingWebhook {
  WebhookKey key;
  QueueName queue;
  std::string url;   // empty: the queue has no webhook any more
  RecordPtr record;  // null: the job was deleted since; there is nothing to tell
  StatePtr state;
};

struct WebhookStats {
  std::uint64_t delivered = 0;
  std::uint64_t failed = 0;    // tries that came to nothing and are repeated
  std::uint64_t given_up = 0;  // deaths that nobody will be told of
  std::uint64_t pending = 0;   // deaths still to be told, as far as the outbox was looked through
};

inline constexpr std::size_t kMaxWebhookUrlBytes = 2000;

// http:// or https://, a host and perhaps a port; no user, no password.
// The error is Errc::invalid_field and says what is wrong with which text; callers prefix the
// field's name.
Status check_webhook_url(std::string_view url);

}  // namespace reprise
