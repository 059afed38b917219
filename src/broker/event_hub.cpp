#include "broker/event_hub.h"

#include <algorithm>
#include <utility>

namespace reprise {

struct EventHub::State {
  const std::uint64_t first_id;
  const std::size_t ring_size;
  const std::size_t subscriber_limit;
  mutable std::mutex mutex;
  // Protected by mutex.
  std::deque<NumberedEvent> ring;
  std::uint64_t next_id = first_id;
  std::vector<SubscriptionImpl*> subscribers;
};

// Shares the hub's state, so that it may outlive the hub.
class EventHub::SubscriptionImpl final : public EventHub::Subscription {
 public:
  SubscriptionImpl(std::shared_ptr<State> state, std::function<void()> wake)
      : state_(std::move(state)), wake_(std::move(wake)) {}

  ~SubscriptionImpl() override {
    const std::lock_guard lock(state_->mutex);
    std::erase(state_->subscribers, this);
  }

  Taken take() override {
    const std::lock_guard lock(state_->mutex);
    Taken taken;
    taken.events.assign(std::make_move_iterator(queue_.begin()),
                        std::make_move_iterator(queue_.end()));
    queue_.clear();
    taken.lost = std::exchange(lost_, 0);
    return taken;
  }

  // The mutex is held. True when the subscriber has to be woken.
  bool offer(const NumberedEvent& event) {
    const bool was_empty = queue_.empty() && lost_ == 0;
    if (queue_.size() >= state_->subscriber_limit) {
      queue_.pop_front();  // the latest news are worth more than the oldest
      ++lost_;
    }
    queue_.push_back(event);
    return was_empty;
  }
  void lose(std::uint64_t count) { lost_ += count; }
  void wake() const { wake_(); }

 private:
  const std::shared_ptr<State> state_;
  const std::function<void()> wake_;
  // Protected by the state's mutex.
  std::deque<NumberedEvent> queue_;
  std::uint64_t lost_ = 0;
};

EventHub::EventHub(std::uint64_t first_id, std::size_t ring_size, std::size_t subscriber_limit)
    : state_(new State{
          .first_id = first_id, .ring_size = ring_size, .subscriber_limit = subscriber_limit}) {}

std::unique_ptr<EventHub::Subscription> EventHub::subscribe(std::function<void()> wake,
                                                            std::optional<std::uint64_t> after_id) {
  auto subscription = std::make_unique<SubscriptionImpl>(state_, std::move(wake));
  bool has_some = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (after_id) {
      const bool of_this_run = *after_id >= state_->first_id && *after_id < state_->next_id;
      if (!of_this_run) after_id = state_->first_id - 1;
      const std::uint64_t first = state_->ring.empty() ? state_->next_id : state_->ring.front().id;
      if (*after_id + 1 < first) subscription->lose(first - *after_id - 1);
      for (const NumberedEvent& event : state_->ring) {
        if (event.id > *after_id) has_some |= subscription->offer(event);
      }
    }
    state_->subscribers.push_back(subscription.get());
  }
  if (has_some) subscription->wake();
  return subscription;
}

void EventHub::publish(std::span<Event> events) {
  // Waking under the lock: a subscription that is being destroyed waits for it, so none is woken
  // after its end.
  const std::lock_guard lock(state_->mutex);
  std::vector<SubscriptionImpl*> to_wake;
  for (Event& event : events) {
    NumberedEvent numbered{state_->next_id++, std::move(event)};
    for (SubscriptionImpl* subscriber : state_->subscribers) {
      if (subscriber->offer(numbered)) to_wake.push_back(subscriber);
    }
    state_->ring.push_back(std::move(numbered));
    if (state_->ring.size() > state_->ring_size) state_->ring.pop_front();
  }
  for (const SubscriptionImpl* subscriber : to_wake) subscriber->wake();
}

std::size_t EventHub::subscribers() const {
  const std::lock_guard lock(state_->mutex);
  return state_->subscribers.size();
}

std::uint64_t EventHub::published() const {
  const std::lock_guard lock(state_->mutex);
  return state_->next_id - state_->first_id;
}

}  // namespace reprise
