// OutboxCursor: what of the outbox to read next. One page at a time is under way.
//
// The end of the outbox, where deaths arrive, is read on from where it ended when one is announced,
// and every now and then anyway. What was left out there is found by passes from the beginning,
// which go on only while somebody is hungry (DeliveryPlan): a backlog of millions for an address
// that is down costs nothing, and for one that is up again it is read in order, a few times at
// most. The two take turns.
//
// Two batches can have deaths of one moment, the second with the smaller keys. So the look every
// now and then begins a little before the one before it.
//
// Threads: one owner, no locks. Time: passed in, never read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "model/webhook.h"

namespace reprise::webhook {

class OutboxCursor {
 public:
  explicit OutboxCursor(Duration poll_every) : poll_every_(poll_every) {}

  // A page holds whole jobs, and a job may have a megabyte.
  static constexpr std::uint32_t kPageLimit = 64;

  enum class Page : std::uint8_t {
    end,         // of deaths that arrived
    first_pass,  // the first one of a pass from the beginning
    pass,
  };
  struct Ask {
    Page page{};
    std::optional<WebhookKey> after;
  };
  // Nothing: there is nothing to read, or a page is under way.
  std::optional<Ask> next(bool hungry, Timestamp now);
  bool under_way() const { return under_way_; }
  // When to ask again, when nothing else happens before.
  Timestamp next_time() const { return under_way_ ? kNever : next_poll_; }

  // A death was announced.
  void wake() { woken_ = true; }

  // The page that was asked for, by its last key; nothing: an empty one. True: it ended a pass.
  bool arrived(std::optional<WebhookKey> last, std::size_t size);
  // It could not be read: asked for again after a while.
  void failed(Timestamp now);

 private:
  Ask ask_for_end(Timestamp now);
  Ask ask_for_pass();

  const Duration poll_every_;
  bool under_way_ = false;
  Page page_{};
  bool woken_ = true;
  bool end_goes_on_ = false;  // the page before was full
  std::optional<Timestamp> latest_poll_;
  std::optional<Timestamp> poll_before_;
  Timestamp next_poll_ = Timestamp::min();
  Timestamp not_before_ = Timestamp::min();
  std::optional<WebhookKey> end_;     // the last one seen there
  std::optional<WebhookKey> end_at_;  // how far it is read this time
  bool passing_ = false;
  std::optional<WebhookKey> passed_;
};

}  // namespace reprise::webhook
