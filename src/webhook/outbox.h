// Outbox: the deaths that are stored and still to be told. The broker has the real one, which the
// daemon passes in: so this module needs neither broker nor storage, and its tests bring their own.
// Threads: called from the sender's thread. Callbacks may come on any thread, also before the call
// returns, and exactly once, except after a fatal error.
#pragma once

#include <absl/functional/any_invocable.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/webhook.h"

namespace reprise::webhook {

class Outbox {
 public:
  template <class T>
  using Done = absl::AnyInvocable<void(Result<T>)>;  // as the broker's

  virtual ~Outbox() = default;

  // Those after `after` in the order of their keys, at most `limit`; fewer only at the end.
  virtual void pending(std::optional<WebhookKey> after, std::uint32_t limit,
                       Done<std::vector<PendingWebhook>> done) = 0;
  // Forgets them for good; those that are not there are fine. Gives how many were.
  virtual void finish(std::vector<WebhookKey> keys, Done<std::uint64_t> done) = 0;
};

}  // namespace reprise::webhook
