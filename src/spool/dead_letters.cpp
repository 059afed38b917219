#include "spool/dead_letters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/json_writer.h"
#include "base/pattern.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/dead_letter_json.h"
#include "spool/dead_letter_file.h"

namespace reprise::spool {
namespace {

constexpr int kMaxNumbers = 10'000;
constexpr std::size_t kShownRawBytes = 64 << 10;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool holds_in_any_case(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  return part.empty() ||
         std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

std::string envelope_text(const DeadEvent& dead) {
  JsonWriter out;
  out.reserve(dead.event.size() + dead.last_error.size() + 512);
  write_dead_event(out, dead);
  return out.take() + "\n";
}

Error no_free_name(std::string_view folder, const std::string& name) {
  return Error{Errc::io, fmt::format("{}/ has no free name for {}", folder, name)};
}

Error unreadable(const std::string& name, const FileContent& content) {
  return Error{Errc::io, fmt::format("cannot read dead-letter/{}: {}", name, content.problem)};
}

bool is_raw(const std::string& name) { return name.ends_with(".raw"); }

}  // namespace

std::string_view death_reason_name(DeathReason reason) {
  switch (reason) {
    case DeathReason::max_attempts:
      return "max_attempts";
    case DeathReason::too_large:
      return "too_large";
    case DeathReason::corrupt:
      return "corrupt";
  }
  return "";
}

bool DeadLetterFilter::fits(const DeadLetter& letter) const {
  return (!type || matches_pattern(*type, letter.type)) &&
         (!error || holds_in_any_case(letter.last_error, *error)) &&
         (!reason || letter.reason == *reason) &&
         (!before || letter.dead_lettered_at < format_timestamp(*before)) &&
         (!after || letter.dead_lettered_at > format_timestamp(*after));
}

Status DeadLetters::bury(const std::string& name, const SpooledEvent& event, DeathReason reason,
                         std::string_view last_error, Timestamp now) {
  const auto writing = files_.write_shared();
  if (!writing) return writing.error();
  const std::string envelope =
      envelope_text({.event = event.json,
                     .attempts = event.attempts,
                     .last_error = cut_at_character(last_error, kMaxLastErrorBytes),
                     .first_attempt_at = event.first_attempt_at,
                     .dead_lettered_at = now,
                     .queue_file = name,
                     .reason = death_reason_name(reason)});
  for (int number = 0; number < kMaxNumbers; ++number) {
    const std::string dead_name = numbered_name(name, number);
    const auto there = files_.read(Folder::dead_letter, dead_name, kMaxEnvelopeBytes);
    if (there.state == FileContent::State::vanished) {
      const auto taken = files_.add(*writing, Folder::dead_letter, {{dead_name, envelope}});
      if (!taken) return taken.error();
      if (taken->empty()) return leave_queue(name, {dead_name});
    } else if (there.state == FileContent::State::whole &&
               parse_dead_letter(dead_name, there).event == event.json) {
      // A burial that was cut off, or a retry: the event is safe here.
      return leave_queue(name, {});
    }
  }
  return no_free_name("dead-letter", name);
}

Status DeadLetters::bury_raw(const std::string& name, DeathReason reason,
                             std::string_view last_error, Timestamp now) {
  const auto writing = files_.write_shared();
  if (!writing) return writing.error();
  for (int number = 0; number < kMaxNumbers; ++number) {
    const std::string dead_name = numbered_name(name, number);
    const std::string raw_name = raw_name_for(dead_name);
    const auto there = files_.read(Folder::dead_letter, dead_name, kMaxEnvelopeBytes);
    const bool is_free = there.state == FileContent::State::vanished;
    // An envelope of these very bytes is that of a burial that was cut off.
    if (!is_free && parse_dead_letter(dead_name, there).raw_name != raw_name) continue;
    const auto kept = files_.keep_raw(*writing, name, raw_name);
    if (!kept) return kept.error();
    if (!*kept) continue;
    if (!is_free) return leave_queue(name, {});
    const auto taken = files_.add(
        *writing, Folder::dead_letter,
        {{dead_name, envelope_text({.event = {},
                                    .last_error = cut_at_character(last_error, kMaxLastErrorBytes),
                                    .dead_lettered_at = now,
                                    .queue_file = name,
                                    .reason = death_reason_name(reason),
                                    .raw_file = raw_name})}});
    if (taken && taken->empty()) return leave_queue(name, {dead_name, raw_name});
    // The bytes are still in the queue.
    const auto removed = files_.remove(Folder::dead_letter, raw_name);
    if (!taken) return taken.error();
    if (!removed) return removed.error();
  }
  return no_free_name("dead-letter", name);
}

// What was made for an event that cannot leave is taken back: it stays in one place.
Status DeadLetters::leave_queue(const std::string& name, const std::vector<std::string>& made) {
  const auto removed = files_.remove(Folder::queue, name);
  if (removed) return ok();
  for (const std::string& dead_name : made) {
    if (const auto undone = files_.remove(Folder::dead_letter, dead_name); !undone) {
      return undone.error();
    }
  }
  return removed.error();
}

Result<std::vector<DeadLetter>> DeadLetters::list(std::vector<std::string>& warnings) const {
  const auto listing = files_.list(Folder::dead_letter, Sizes::no);
  if (!listing) return listing.error();
  warnings.insert(warnings.end(), listing->ignored.begin(), listing->ignored.end());
  std::vector<DeadLetter> letters;
  std::set<std::string> with_envelope;
  const auto readable = [&](const std::string& name, const FileContent& content) {
    if (content.state == FileContent::State::unreadable) {
      warnings.push_back(fmt::format("dead-letter/{}: {}", name, content.problem));
    }
    return content.state == FileContent::State::whole ||
           content.state == FileContent::State::too_large;
  };
  for (const FileEntry& file : listing->files) {
    const auto content = files_.read(Folder::dead_letter, file.name, kMaxEnvelopeBytes);
    if (!readable(file.name, content)) continue;
    auto parsed = parse_dead_letter(file.name, content);
    with_envelope.insert(std::move(parsed.raw_name));
    letters.push_back(std::move(parsed.letter));
  }
  for (const std::string& name : listing->raw_files) {
    if (with_envelope.contains(name)) continue;
    const auto content = files_.read(Folder::dead_letter, name, 0);
    if (readable(name, content)) letters.push_back(orphaned_bytes(name, content));
  }
  std::ranges::sort(letters, [](const DeadLetter& a, const DeadLetter& b) {
    return std::tie(a.dead_lettered_at, a.name) > std::tie(b.dead_lettered_at, b.name);
  });
  return letters;
}

Result<std::string> DeadLetters::show(const DeadLetter& letter) const {
  const auto content = is_raw(letter.name)
                           ? files_.read_head(Folder::dead_letter, letter.name, kShownRawBytes)
                           : files_.read(Folder::dead_letter, letter.name, kMaxEnvelopeBytes);
  switch (content.state) {
    case FileContent::State::whole:
      return valid_utf8(content.bytes);
    case FileContent::State::too_large:
      return Error{Errc::io, fmt::format("dead-letter/{} is too large to be shown: {} bytes",
                                         letter.name, content.size)};
    case FileContent::State::vanished:
    case FileContent::State::unreadable:
      break;
  }
  return unreadable(letter.name, content);
}

std::string DeadLetters::raw_head(const DeadLetter& letter, std::size_t max_bytes) const {
  if (is_raw(letter.name)) {
    return files_.read_head(Folder::dead_letter, letter.name, max_bytes).bytes;
  }
  const auto content = files_.read(Folder::dead_letter, letter.name, kMaxEnvelopeBytes);
  if (content.state != FileContent::State::whole) return {};
  const auto parsed = parse_dead_letter(letter.name, content);
  if (!parsed.is_json) return content.bytes.substr(0, max_bytes);
  if (parsed.raw_name.empty()) return {};
  return files_.read_head(Folder::dead_letter, parsed.raw_name, max_bytes).bytes;
}

Result<bool> DeadLetters::retry(const DeadLetter& letter) {
  const auto writing = files_.write_shared();
  if (!writing) return writing.error();
  if (is_raw(letter.name)) return Error{Errc::wrong_status, letter.cannot_retry};
  const auto content = files_.read(Folder::dead_letter, letter.name, kMaxEnvelopeBytes);
  if (content.state == FileContent::State::vanished) return false;
  if (content.state == FileContent::State::unreadable) return unreadable(letter.name, content);
  const auto parsed = parse_dead_letter(letter.name, content);
  if (!parsed.letter.cannot_retry.empty()) {
    return Error{Errc::wrong_status, parsed.letter.cannot_retry};
  }
  for (int number = 0; number < kMaxNumbers; ++number) {
    const std::string name = numbered_name(parsed.queue_name, number);
    const auto taken = files_.add(*writing, Folder::queue, {{name, parsed.event}});
    if (!taken) return taken.error();
    if (!taken->empty()) {
      const auto there = files_.read(Folder::queue, name, kMaxEventFileBytes);
      const auto queued = parse_event(there.bytes);
      if (!queued || queued->id != parsed.letter.id) continue;
      if (queued->json != parsed.event) {
        return Error{Errc::wrong_status, "another event of this id is in the queue"};
      }
    }
    return files_.remove(Folder::dead_letter, letter.name);
  }
  return no_free_name("queue", parsed.queue_name);
}

Result<bool> DeadLetters::purge(const DeadLetter& letter) {
  if (!is_raw(letter.name)) {
    const auto content = files_.read(Folder::dead_letter, letter.name, kMaxEnvelopeBytes);
    const std::string raw_name = content.state == FileContent::State::whole
                                     ? parse_dead_letter(letter.name, content).raw_name
                                     : std::string();
    if (!raw_name.empty()) {
      const auto removed = files_.remove(Folder::dead_letter, raw_name);
      if (!removed) return removed.error();
    }
  }
  return files_.remove(Folder::dead_letter, letter.name);
}

}  // namespace reprise::spool
