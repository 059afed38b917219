// DeliveryPlan: which deaths are to be told next, to whom, and when again after a failure.
//
// Each address has a lane. A lane holds a bounded number of keys and no job's payload, so memory
// does not grow with what is pending; what finds no room is left out and stays in the outbox, and
// hungry() says when it is worth looking for it there again. Lanes take turns, so that no address
// holds up another:
// - at most kPerAddress requests at a time go to one address, one while it fails;
// - addresses that fail together take no more than kFailingInFlight of the kInFlight requests.
// A death that has come to the longest wait gives its place to one that was never tried: a few
// that an address refuses must not keep the others from it.
//
// Nothing here is durable. Threads: one owner, no locks. Time: passed in, never read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"
#include "model/webhook.h"

namespace reprise::webhook {

// When to try again: first, then each time twice as long, up to longest.
struct RetrySchedule {
  Duration first = std::chrono::seconds(1);
  Duration longest = std::chrono::minutes(10);
  Duration give_up_after = std::chrono::hours(72);  // since the death

  // failures >= 1.
  Duration wait_after(std::uint32_t failures) const;
};

class DeliveryPlan {
 public:
  static constexpr std::size_t kInFlight = 16;
  static constexpr std::size_t kFailingInFlight = 12;
  static constexpr std::size_t kPerAddress = 4;
  static constexpr std::size_t kHeldTotal = 4096;
  static constexpr std::size_t kHeldPerAddress = 256;

  explicit DeliveryPlan(RetrySchedule schedule) : schedule_(schedule) {}

  // How a death was found in the outbox: at its end, or on a pass from the beginning.
  enum class Found : std::uint8_t { at_the_end, on_a_pass };
  // False: left out, for want of room. One that is held already is fine and changes nothing.
  bool offer(const WebhookKey& key, const std::string& url, Found found, Timestamp now);
  bool holds(const WebhookKey& key) const { return entries_.contains(key); }
  std::size_t held() const { return entries_.size(); }
  // How many were left out, as far as none was deleted since.
  std::size_t left_out() const { return left_out_; }

  struct Delivery {
    WebhookKey key;
    std::string url;
    // Not to be sent but given up, and no longer held: it is older than the schedule allows, and
    // its address has failed for so long that a try is not worth its time. Whoever could only be
    // given up after a try would outlive any outage that ends every request with a timeout.
    bool given_up = false;
  };
  // What to send now. Its request counts until one of the four calls below.
  std::optional<Delivery> take_due(Timestamp now);
  // When to ask again, when nothing else happens before; kNever: not at all.
  Timestamp next_due() const;

  // An address that begins or ceases to fail is worth a line in the log.
  enum class News : std::uint8_t { none, began_to_fail, works_again };
  struct Failed {
    News news = News::none;
    bool given_up = false;  // too old for another try: no longer held
    Duration wait{};        // until the next try
  };
  News delivered(const WebhookKey& key);
  Failed failed(const WebhookKey& key, Timestamp now);
  // It was not tried for a reason of our own.
  void postpone(const WebhookKey& key, Timestamp until);
  void forget(const WebhookKey& key);  // it is not to be sent any more

  // Some lane left deaths out and has much room now: the outbox is to be looked through, from its
  // beginning to its end. A pass may stop for as long as nobody is hungry.
  bool hungry() const;
  void begin_pass();
  void end_pass();

 private:
  using Waiting = std::set<std::pair<Timestamp, WebhookKey>>;
  struct Lane {
    Waiting waiting;  // by when they are due
    std::size_t in_flight = 0;
    std::size_t patient = 0;  // of those waiting: for the longest wait
    bool failing = false;     // the latest request to it did
    Timestamp failing_since{};
    std::uint64_t turn = 0;  // when it was served last
    bool left_some_out = false;
    std::uint64_t left_out_in = 0;  // the latest pass in which it did

    std::size_t held() const { return waiting.size() + in_flight; }
  };
  using Lanes = std::map<std::string, Lane>;
  struct Entry {
    Lanes::iterator lane;
    std::uint32_t failures = 0;
    Timestamp due{};
    bool in_flight = false;
  };
  using Entries = std::map<WebhookKey, Entry>;

  std::size_t room_per_lane() const;
  bool is_patient(const Entry& entry) const;
  bool may_send(const Lane& lane) const;
  bool is_too_old(const WebhookKey& key, Timestamp now) const;
  bool is_down(const Lane& lane, Timestamp now) const;
  void set_failing(Lane& lane, bool failing);
  Delivery begin_request(Lanes::iterator to);
  void note_left_out(Lane& lane, bool seen_by_pass);
  void give_up_a_place(Lane& lane);
  void wait_until(Timestamp due, Entries::iterator at);
  void stop_waiting(Entries::iterator at);
  Entries::iterator end_request(const WebhookKey& key);
  void erase(Entries::iterator at);
  void drop_if_unused(Lanes::iterator at);

  const RetrySchedule schedule_;
  Lanes lanes_;
  Entries entries_;
  std::size_t in_flight_ = 0;
  std::size_t failing_in_flight_ = 0;
  std::size_t left_out_ = 0;
  std::size_t left_out_by_pass_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t pass_ = 0;
};

}  // namespace reprise::webhook
