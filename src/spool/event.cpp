#include "spool/event.h"

#include <algorithm>
#include <limits>

#include "base/json_writer.h"
#include "base/text.h"
#include "spool/event_object.h"

namespace reprise::spool {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
// Longer than any time; such text is no time.
constexpr std::size_t kMaxTimeBytes = 64;

std::uint32_t attempts_of(JsonView value) {
  const auto number = value.unsigned_integer();
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return 0;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

Result<SpooledEvent> parse_event(std::string_view bytes) {
  const auto object = EventObject::parse(bytes);
  if (!object) return object.error();
  auto id = object->id();
  if (!id) return id.error();
  SpooledEvent event;
  event.id = std::move(*id);
  event.type = (*object)["type"].string_or("");
  event.json = object->without_bookkeeping();
  event.attempts = attempts_of((*object)[kAttemptsField]);
  event.first_attempt_at = (*object)[kFirstAttemptField].string_or("");
  if (event.first_attempt_at.size() > kMaxTimeBytes) event.first_attempt_at.clear();
  event.last_error = cut_at_character((*object)[kLastErrorField].string_or(""), kMaxLastErrorBytes);
  return event;
}

std::string event_file_name(std::string_view id) {
  std::string name(id);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return name + ".json";
}

// Right behind the last value: what white space there is before the closing brace is there again
// when the bookkeeping has been cut out.
std::string event_file_text(const SpooledEvent& event) {
  const std::size_t closing = event.json.rfind('}');
  if (closing == std::string::npos || closing == 0) return event.json;
  const std::size_t last = event.json.find_last_not_of(kSpace, closing - 1);
  std::string text = event.json.substr(0, last + 1);
  const auto add = [&text](std::string_view name) {
    if (!text.ends_with('{')) text += ',';
    append_json_string(text, name);
    text += ':';
  };
  if (event.attempts > 0) {
    add(kAttemptsField);
    text += std::to_string(event.attempts);
  }
  if (!event.first_attempt_at.empty()) {
    add(kFirstAttemptField);
    append_json_string(text, event.first_attempt_at);
  }
  if (!event.last_error.empty()) {
    add(kLastErrorField);
    append_json_string(text, cut_at_character(event.last_error, kMaxLastErrorBytes));
  }
  return text.append(event.json, last + 1);
}

std::string new_event_json(const NewEvent& event) {
  JsonWriter out;
  out.reserve(event.data.size() + event.type.size() + 128);
  out.begin_object();
  out.key("id").value(event.id);
  out.key("type").value(event.type);
  out.key("timestamp").value(format_timestamp(event.timestamp));
  out.key("data").raw(event.data);
  out.end_object();
  return out.take();
}

}  // namespace reprise::spool
