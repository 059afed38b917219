// EventHub: events to those who watch. Each subscriber has a bounded queue; one that reads too
// slowly loses events, is told how many, and never slows the broker down.
// A ring of recent events lets a subscriber that was cut off go on where it was.
// Threads: all methods from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/event.h"

namespace reprise {

struct NumberedEvent {
  std::uint64_t id{};  // ascending by one within one run of the server
  Event event;
};

class EventHub {
 public:
  static constexpr std::size_t kRingSize = 4096;
  static constexpr std::size_t kSubscriberLimit = 1024;

  // `first_id` tells this run's ids from those of earlier ones: give each run a larger one.
  explicit EventHub(std::uint64_t first_id = 1, std::size_t ring_size = kRingSize,
                    std::size_t subscriber_limit = kSubscriberLimit);

  class Subscription {
   public:
    virtual ~Subscription() = default;  // unsubscribes
    // What came since the last call, and how many were lost before it.
    struct Taken {
      std::vector<NumberedEvent> events;
      std::uint64_t lost = 0;
    };
    virtual Taken take() = 0;
  };
  // `wake` is called, from the publisher's thread, when there is something to take and the last
  // take() had left nothing. It must be short. after_id: only events after it, replayed from the
  // ring as far as it reaches; one of another run means all of this run.
  std::unique_ptr<Subscription> subscribe(std::function<void()> wake,
                                          std::optional<std::uint64_t> after_id = std::nullopt);

  // For the broker: called after the events' batch is durable. Takes what is in `events`.
  void publish(std::vector<Event>& events);

  std::size_t subscribers() const;
  std::uint64_t published() const;

 private:
  class Ring;
  struct State;
  class SubscriptionImpl;
  std::shared_ptr<State> state_;
};

}  // namespace reprise
