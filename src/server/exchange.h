// Exchange: one request that waits for its reply, as handlers see it.
// A handle, cheap to copy. Exactly one reply (or one stream) per exchange; the connection reads on
// after it.
// Threads: reply(), stream(), waits_for() and watch_peer() on the connection's io thread, which is
// where handlers run; what then() returns may be called on any thread.
#pragma once

#include <memory>
#include <utility>

#include "broker/broker.h"
#include "server/event_stream.h"
#include "server/mailbox.h"
#include "server/response.h"

namespace reprise::server {

// The connection behind an exchange.
class ReplyTarget {
 public:
  virtual ~ReplyTarget() = default;
  virtual void reply(Response response) = 0;
  virtual void stream(std::unique_ptr<EventStream> events) = 0;
  // The broker holds a claim for this exchange: withdraw it when the peer goes away.
  virtual void waits_for(ClaimId claim) = 0;
  // The reply may take long: notice at once when the peer goes away, and close.
  virtual void watch_peer() = 0;
  // Its thread. Lives as long as the target.
  virtual Mailbox& mailbox() = 0;
};

class Exchange {
 public:
  explicit Exchange(std::shared_ptr<ReplyTarget> target) : target_(std::move(target)) {}

  void reply(Response response) const { target_->reply(std::move(response)); }
  void stream(std::unique_ptr<EventStream> events) const { target_->stream(std::move(events)); }
  void waits_for(ClaimId claim) const { target_->waits_for(claim); }
  void watch_peer() const { target_->watch_peer(); }
  const std::shared_ptr<ReplyTarget>& target() const { return target_; }

  // A callback for the broker. The result goes to the io thread as it is and becomes text there:
  // `encode` makes a Response of a T; an error becomes its own.
  template <class T, class Encode>
  Done<T> then(Encode encode) const {
    return [target = target_, encode = std::move(encode)](Result<T> result) mutable {
      target->mailbox().post(
          [target, encode = std::move(encode), result = std::move(result)]() mutable {
            target->reply(result ? encode(std::move(*result)) : error_response(result.error()));
          });
    };
  }

 private:
  std::shared_ptr<ReplyTarget> target_;
};

}  // namespace reprise::server
