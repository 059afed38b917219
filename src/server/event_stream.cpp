#include "server/event_stream.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/json_writer.h"
#include "server/job_json.h"

namespace reprise::server {
namespace {

constexpr std::size_t kTextBytes = 64 << 10;

void append_event(std::string& out, const NumberedEvent& numbered) {
  JsonWriter data;
  write_event(data, numbered.event);
  fmt::format_to(std::back_inserter(out), "id: {}\nevent: {}\ndata: {}\n\n", numbered.id,
                 event_type_name(numbered.event.type), data.text());
}

}  // namespace

bool EventFilter::wants(const Event& event) const {
  return types.test(static_cast<std::size_t>(event.type)) && (!ns || *ns == event.queue->ns) &&
         (!queue || *queue == event.queue->name);
}

std::optional<EventType> event_type_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kEventTypeCount; ++i) {
    if (event_type_name(static_cast<EventType>(i)) == name) return static_cast<EventType>(i);
  }
  return std::nullopt;
}

EventStream::EventStream(EventFilter filter, std::optional<std::uint64_t> after_id)
    : filter_(std::move(filter)), after_id_(after_id) {}

void EventStream::start(EventHub& hub, std::function<void()> wake) {
  subscription_ = hub.subscribe(std::move(wake), after_id_);
}

// False when the hub has nothing either.
bool EventStream::take_more() {
  taken_ = subscription_->take();
  next_ = 0;
  return !taken_.events.empty() || taken_.lost > 0;
}

std::string EventStream::next_text() {
  std::string text;
  while (text.size() < kTextBytes) {
    if (next_ == taken_.events.size() && !take_more()) break;
    if (const auto lost = std::exchange(taken_.lost, 0); lost > 0) {
      fmt::format_to(std::back_inserter(text), "event: lost\ndata: {{\"lost\": {}}}\n\n", lost);
    }
    for (; next_ < taken_.events.size() && text.size() < kTextBytes; ++next_) {
      const NumberedEvent& numbered = taken_.events[next_];
      if (filter_.wants(numbered.event)) append_event(text, numbered);
    }
  }
  return text;
}

}  // namespace reprise::server
