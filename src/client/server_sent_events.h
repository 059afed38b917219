// EventParser: turns the bytes of a text/event-stream into events, however they are cut up.
// Comments and unknown fields are skipped, as the standard says. One event's data may not grow
// beyond kMaxEventBytes: a longer one is dropped, so that a stream cannot fill memory.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace reprise::client {

struct ServerSentEvent {
  std::string id;    // of this event, or of the latest that had one
  std::string type;  // "message" when the stream names none
  std::string data;
};

class EventParser {
 public:
  static constexpr std::size_t kMaxEventBytes = 1 << 20;

  explicit EventParser(std::function<void(const ServerSentEvent&)> on_event);

  // Calls on_event for every event that `bytes` completes.
  void feed(std::string_view bytes);
  // The connection broke: what is half read belongs to no event.
  void restart();

 private:
  void take_line(std::string_view line);
  void dispatch();

  std::function<void(const ServerSentEvent&)> on_event_;
  std::string line_;  // the part of a line that has arrived
  ServerSentEvent event_;
  bool has_data_ = false;
  bool too_long_ = false;
};

}  // namespace reprise::client
