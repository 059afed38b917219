#include "client/server_sent_events.h"

#include <utility>

namespace reprise::client {

EventParser::EventParser(std::function<void(const ServerSentEvent&)> on_event)
    : on_event_(std::move(on_event)) {}

void EventParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const auto part = bytes.substr(0, end);
    if (line_.size() + part.size() > kMaxEventBytes) {
      too_long_ = true;
    } else {
      line_ += part;
    }
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    if (line_.ends_with('\r')) line_.pop_back();
    take_line(line_);
    line_.clear();
  }
}

void EventParser::restart() {
  line_.clear();
  event_.type.clear();
  event_.data.clear();
  has_data_ = too_long_ = false;
}

void EventParser::take_line(std::string_view line) {
  if (line.empty()) return dispatch();
  const std::size_t colon = line.find(':');
  const auto field = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);

  if (field == "id") {
    event_.id = value;
  } else if (field == "event") {
    event_.type = value;
  } else if (field == "data") {
    if (event_.data.size() + value.size() > kMaxEventBytes) {
      too_long_ = true;
      return;
    }
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
}

void EventParser::dispatch() {
  if (has_data_ && !too_long_) {
    if (event_.type.empty()) event_.type = "message";
    on_event_(event_);
  }
  restart();
}

}  // namespace reprise::client
