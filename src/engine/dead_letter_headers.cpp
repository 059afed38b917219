#include "engine/dead_letter_headers.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/text.h"

namespace reprise {
namespace {

constexpr std::string_view kOriginQueue = "reprise-origin-queue";
constexpr std::string_view kDeathReason = "reprise-death-reason";
constexpr std::string_view kError = "reprise-error";
constexpr std::string_view kAttempts = "reprise-attempts";
constexpr std::string_view kDiedAt = "reprise-died-at";
constexpr std::array kOurs = {kOriginQueue, kDeathReason, kError, kAttempts, kDiedAt};

// An error may be longer than a header.
constexpr std::size_t kErrorBytesMax = 2048;

// At most so many bytes, and whole characters.
std::string cut(std::string_view text, std::size_t bytes_max) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t next = std::max<std::size_t>(utf8_character_bytes(text.substr(end)), 1);
    if (end + next > bytes_max) break;
    end += next;
  }
  return std::string(text.substr(0, end));
}

}  // namespace

JobRecord with_dead_letter_headers(const JobRecord& record, const QueueName& queue,
                                   const JobState& dead) {
  JobRecord letter = without_dead_letter_headers(record);
  const auto add = [&](std::string_view name, std::string value) {
    letter.headers.emplace_back(name, std::move(value));
  };
  add(kOriginQueue, queue.name);
  add(kDeathReason, std::string(death_reason_text(dead)));
  add(kError, cut(dead.last_error, kErrorBytesMax));
  add(kAttempts, std::to_string(dead.attempts));
  add(kDiedAt, format_timestamp(dead.ended_at));
  return letter;
}

JobRecord without_dead_letter_headers(const JobRecord& record) {
  JobRecord plain = record;
  std::erase_if(plain.headers, [](const auto& header) {
    return std::ranges::find(kOurs, header.first) != kOurs.end();
  });
  return plain;
}

}  // namespace reprise
