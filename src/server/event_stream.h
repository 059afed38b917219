// EventStream: the text of GET /v1/events for one reader.
// A slow reader costs a bounded amount of memory: text is made only when the last text has left,
// and events are taken from the hub only when all taken ones have become text. What the hub could
// not keep meanwhile it counts, and the reader is told. Threads: one owner, apart from `wake`,
// which the hub calls from the publisher's thread.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "broker/event_hub.h"
#include "engine/event.h"

namespace reprise::server {

struct EventFilter {
  std::optional<std::string> ns;
  std::optional<std::string> queue;
  std::bitset<kEventTypeCount> types = std::bitset<kEventTypeCount>().set();

  bool wants(const Event& event) const;
};

class EventStream {
 public:
  EventStream(EventFilter filter, std::optional<std::uint64_t> after_id);

  // Subscribes. `wake` is called when next_text() may have something again.
  void start(EventHub& hub, std::function<void()> wake);

  // The next events as text, about 64 KiB of it at most; empty when there is nothing to tell.
  std::string next_text();

 private:
  bool take_more();

  const EventFilter filter_;
  const std::optional<std::uint64_t> after_id_;
  std::unique_ptr<EventHub::Subscription> subscription_;
  EventHub::Subscription::Taken taken_;
  std::size_t next_ = 0;  // the first of taken_.events that is not text yet
};

// The event type of a wire name ("queue:pushed").
std::optional<EventType> event_type_from_name(std::string_view name);

}  // namespace reprise::server
