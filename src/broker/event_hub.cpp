#include "broker/event_hub.h"

#include <algorithm>
#include <utility>

namespace reprise {

// The latest events, in the vectors in which they came: with nobody watching, which is usual, none
// is moved.
class EventHub::Ring {
 public:
  explicit Ring(std::size_t size_max) : size_max_(size_max) {}

  // They follow those that came before.
  void add(std::uint64_t first_id, std::vector<Event> events) {
    if (events.size() > size_max_ || events.capacity() > 2 * size_max_) {
      const std::size_t dropped = events.size() - std::min(events.size(), size_max_);
      first_id += dropped;
      events = std::vector<Event>(
          std::make_move_iterator(events.begin() + static_cast<std::ptrdiff_t>(dropped)),
          std::make_move_iterator(events.end()));
    }
    if (events.empty()) return;
    size_ += events.size();
    blocks_.push_back({first_id, std::move(events)});
    while (size_ - blocks_.front().events.size() >= size_max_) {
      size_ -= blocks_.front().events.size();
      blocks_.pop_front();
    }
  }

  // The id of the first event that is kept; nothing: there is none. A block may have a few before
  // it.
  std::optional<std::uint64_t> first_id() const {
    if (blocks_.empty()) return std::nullopt;
    return blocks_.front().first_id + (size_ - std::min(size_, size_max_));
  }

  template <class Visit>
  void visit_from(std::uint64_t id, const Visit& visit) const {
    for (const Block& block : blocks_) {
      for (std::size_t i = 0; i < block.events.size(); ++i) {
        if (block.first_id + i >= id) visit(NumberedEvent{block.first_id + i, block.events[i]});
      }
    }
  }

 private:
  struct Block {
    std::uint64_t first_id{};
    std::vector<Event> events;  // not empty
  };

  const std::size_t size_max_;
  std::deque<Block> blocks_;
  std::size_t size_ = 0;  // of all blocks; without the first less than size_max_
};

struct EventHub::State {
  const std::uint64_t first_id;
  const std::size_t subscriber_limit;
  mutable std::mutex mutex;
  // Protected by mutex.
  Ring ring;
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
          .first_id = first_id, .subscriber_limit = subscriber_limit, .ring = Ring(ring_size)}) {}

std::unique_ptr<EventHub::Subscription> EventHub::subscribe(std::function<void()> wake,
                                                            std::optional<std::uint64_t> after_id) {
  auto subscription = std::make_unique<SubscriptionImpl>(state_, std::move(wake));
  bool has_some = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (after_id) {
      const bool of_this_run = *after_id >= state_->first_id && *after_id < state_->next_id;
      if (!of_this_run) after_id = state_->first_id - 1;
      const std::uint64_t first = state_->ring.first_id().value_or(state_->next_id);
      if (*after_id + 1 < first) subscription->lose(first - *after_id - 1);
      state_->ring.visit_from(std::max(*after_id + 1, first), [&](const NumberedEvent& event) {
        has_some |= subscription->offer(event);
      });
    }
    state_->subscribers.push_back(subscription.get());
  }
  if (has_some) subscription->wake();
  return subscription;
}

void EventHub::publish(std::vector<Event>& events) {
  // Waking under the lock: a subscription that is being destroyed waits for it, so none is woken
  // after its end.
  const std::lock_guard lock(state_->mutex);
  std::vector<SubscriptionImpl*> to_wake;
  const std::uint64_t first_id = state_->next_id;
  state_->next_id += events.size();
  if (!state_->subscribers.empty()) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const NumberedEvent numbered{first_id + i, events[i]};
      for (SubscriptionImpl* subscriber : state_->subscribers) {
        if (subscriber->offer(numbered)) to_wake.push_back(subscriber);
      }
    }
  }
  state_->ring.add(first_id, std::exchange(events, {}));
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
