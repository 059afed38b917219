#include "spool/dead_letter_file.h"

#include <fmt/format.h>

#include <limits>

#include "base/text.h"
#include "spool/event_object.h"

namespace reprise::spool {
namespace {

constexpr std::string_view kEventEnding = ".json";
constexpr std::string_view kRawEnding = ".raw";
constexpr std::string_view kCorruptPrefix = "Corrupt event file: ";
constexpr std::size_t kMaxNameBytes = 255;
// What leaves room for "~1234" and an ending.
constexpr std::size_t kMaxNumberedStemBytes = 240;

// Text of an envelope names files: it must not lead anywhere else.
bool is_plain_name(std::string_view name, std::string_view ending) {
  return name.size() > ending.size() && name.size() <= kMaxNameBytes && name.ends_with(ending) &&
         !name.starts_with('.') && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// UTC as ISO 8601, so that it compares as text.
bool is_utc_time(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (text.size() <= kShape.size() || text.size() > 40 || !text.ends_with('Z')) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool fits = kShape[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == kShape[i];
    if (!fits) return false;
  }
  return true;
}

std::string why_not_sent(const DeadLetter& letter) {
  if (letter.reason == death_reason_name(DeathReason::too_large)) {
    return "too large: " + letter.last_error;
  }
  std::string_view error = letter.last_error;
  if (error.starts_with(kCorruptPrefix)) error.remove_prefix(kCorruptPrefix.size());
  return fmt::format("corrupt: {}", error.empty() ? "there is no event in it" : error);
}

void take_event(std::string_view text, DeadLetterFile& file) {
  DeadLetter& letter = file.letter;
  auto event = parse_event(text);
  if (!event) {
    letter.cannot_retry = "corrupt: " + event.error().detail;
    return;
  }
  letter.id = event->id;
  letter.type = event->type;
  if (!letter.has_envelope) {
    letter.attempts = event->attempts;
    letter.last_error = event->last_error;
  }
  if (event->json.size() > kMaxEventBytes) {
    letter.cannot_retry =
        fmt::format("too large: {} bytes, at most {}", event->json.size(), kMaxEventBytes);
  }
  if (file.queue_name.empty()) file.queue_name = event_file_name(event->id);
  file.event = std::move(event->json);
}

void take_envelope(const EventObject& envelope, DeadLetterFile& file) {
  DeadLetter& letter = file.letter;
  const JsonView meta = envelope["meta"];
  const auto attempts = meta["attempts"].unsigned_integer().value_or(0);
  if (attempts <= std::numeric_limits<std::uint32_t>::max()) {
    letter.attempts = static_cast<std::uint32_t>(attempts);
  }
  letter.last_error = cut_at_character(meta["lastError"].string_or(""), kMaxLastErrorBytes);
  letter.reason = meta["reason"].string_or("");
  const std::string time = meta["deadLetteredAt"].string_or("");
  if (is_utc_time(time)) letter.dead_lettered_at = time;
  const std::string queue_name = meta["queueFile"].string_or("");
  if (is_plain_name(queue_name, kEventEnding)) file.queue_name = queue_name;
  // Only bytes beside it: those of another dead letter are none of its business.
  if (meta["rawFile"].string_or("") == raw_name_for(letter.name)) {
    file.raw_name = raw_name_for(letter.name);
  }
  const JsonView event = envelope["event"];
  if (event.is_null()) {
    letter.cannot_retry = why_not_sent(letter);
  } else {
    take_event(event.raw(), file);
    const bool too_large = letter.reason == death_reason_name(DeathReason::too_large);
    if (too_large && letter.cannot_retry.empty()) letter.cannot_retry = why_not_sent(letter);
  }
}

DeadLetter without_envelope(const std::string& name, const FileContent& content) {
  DeadLetter letter;
  letter.name = name;
  letter.id = stem_of(name);
  letter.dead_lettered_at = format_timestamp(content.changed_at);
  letter.has_envelope = false;
  return letter;
}

}  // namespace

DeadLetterFile parse_dead_letter(const std::string& name, const FileContent& content) {
  DeadLetterFile file;
  file.letter = without_envelope(name, content);
  DeadLetter& letter = file.letter;
  if (content.state == FileContent::State::too_large) {
    letter.cannot_retry =
        fmt::format("too large: {} bytes, at most {}", content.size, kMaxEnvelopeBytes);
    return file;
  }
  const auto object = EventObject::parse(content.bytes);
  if (!object) {
    letter.reason = death_reason_name(DeathReason::corrupt);
    letter.cannot_retry = "corrupt: " + object.error().detail;
    return file;
  }
  file.is_json = true;
  // An event may well have a field of the name "event"; an envelope has no id.
  letter.has_envelope = !object->id() && (*object)["event"].present();
  if (letter.has_envelope) {
    take_envelope(*object, file);
  } else {
    take_event(content.bytes, file);
  }
  return file;
}

DeadLetter orphaned_bytes(const std::string& name, const FileContent& content) {
  DeadLetter letter = without_envelope(name, content);
  letter.cannot_retry = "corrupt: these bytes were no event, and their envelope is missing";
  return letter;
}

std::string_view stem_of(std::string_view name) {
  for (const std::string_view ending : {kEventEnding, kRawEnding}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

std::string numbered_name(std::string_view name, int number) {
  if (number == 0) return std::string(name);
  return fmt::format("{}~{}{}", stem_of(name).substr(0, kMaxNumberedStemBytes), number,
                     kEventEnding);
}

std::string raw_name_for(std::string_view name) {
  return std::string(stem_of(name)).append(kRawEnding);
}

}  // namespace reprise::spool
