#include "server/log_reader.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace reprise::server {
namespace {

using worker::LogPart;
using worker::LogQuery;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMaxCharacterBytes = 4;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the character that a byte begins; 1 for one that begins none.
std::size_t character_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 1;
}

void drop_cut_character(LogPart& part) {
  if (part.next == part.text.size()) return;  // it begins where the log does
  std::size_t cut = 0;
  while (cut < part.text.size() && cut < kMaxCharacterBytes - 1 &&
         is_continuation(part.text[cut])) {
    ++cut;
  }
  part.text.erase(0, cut);
}

// One call, until it is answered.
struct Reading {
  LogSource source;
  LogQuery query;
  Done<LogPart> done;
  SteadyClock::time_point deadline;
  std::string begun;  // of a character; what is asked for next follows it
};

void ask(const std::shared_ptr<Reading>& reading);

void on_part(const std::shared_ptr<Reading>& reading, LogPart part) {
  const bool has_more = !part.text.empty();
  if (reading->query.tail) drop_cut_character(part);
  part.text.insert(0, reading->begun);
  const std::size_t unfinished = part.ended ? 0 : unfinished_bytes(part.text);
  const auto left = std::chrono::duration_cast<Duration>(reading->deadline - SteadyClock::now());
  const bool nothing_else = unfinished > 0 && unfinished == part.text.size();
  // Without anything new the service does not want to wait any longer.
  if (nothing_else && has_more && left > Duration::zero()) {
    reading->begun = std::move(part.text);
    reading->query.offset = part.next;
    reading->query.tail.reset();
    reading->query.wait = left;
    return ask(reading);
  }
  part.text.resize(part.text.size() - unfinished);
  part.next -= unfinished;
  reading->done(std::move(part));
}

void ask(const std::shared_ptr<Reading>& reading) {
  reading->source(reading->query, [reading](Result<LogPart> part) {
    if (!part) return reading->done(part.error());
    on_part(reading, std::move(*part));
  });
}

}  // namespace

std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t length = 1; length < kMaxCharacterBytes && length <= text.size(); ++length) {
    const char c = text[text.size() - length];
    if (is_continuation(c)) continue;
    return character_bytes(c) > length ? length : 0;
  }
  return 0;
}

void read_log(LogSource source, LogQuery query, Done<LogPart> done) {
  const auto deadline = SteadyClock::now() + query.wait;
  ask(std::make_shared<Reading>(
      Reading{std::move(source), std::move(query), std::move(done), deadline, {}}));
}

}  // namespace reprise::server
