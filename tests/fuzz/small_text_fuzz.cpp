// Small texts that people and clients write: durations, rates, sizes, times, ids, patterns. What is
// read can be written, and is read as the same again.
//
// An input is the text; of a pattern and what it is compared with, both with a 0x00 between.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/duration.h"
#include "base/ids.h"
#include "base/pattern.h"
#include "base/rate.h"
#include "base/text.h"
#include "base/time.h"
#include "base/ulid.h"
#include "fuzz/fuzz.h"
#include "model/timer_id.h"
#include "model/webhook.h"

namespace reprise {
namespace {

void check_error(const Error& error) {
  REPRISE_CHECK(error.code == Errc::invalid_field && !error.detail.empty());
}

void check_duration(std::string_view text) {
  const auto duration = parse_duration(text);
  if (!duration) return check_error(duration.error());
  REPRISE_CHECK(*duration >= Duration{} && *duration <= std::chrono::hours(24 * 366 * 100));
  const std::string written = format_duration(*duration);
  const auto again = parse_duration(written);
  REPRISE_CHECK(again && *again == *duration && format_duration(*again) == written);
  REPRISE_CHECK(!humanize_duration(*duration).empty());
}

void check_rate(std::string_view text) {
  const auto rate = parse_rate(text);
  if (!rate) return check_error(rate.error());
  REPRISE_CHECK(rate->count > 0 && rate->per > Duration{} && rate->interval() > Duration{});
  REPRISE_CHECK(rate->per_second() <= Rate::kFastestPerSecond);
  REPRISE_CHECK(rate->allowed_in(rate->per) >= rate->count);
  const auto again = parse_rate(format_rate(*rate));
  REPRISE_CHECK(again && *again == *rate);
}

void check_timestamp(std::string_view text) {
  const auto time = parse_timestamp(text);
  if (!time) return;
  const std::string written = format_timestamp(*time);
  const auto again = parse_timestamp(written);
  REPRISE_CHECK(again && format_timestamp(*again) == written);
  const auto lost = *time - *again;
  REPRISE_CHECK(lost >= Duration{} && lost < std::chrono::milliseconds(1));
}

void check_ids(std::string_view text) {
  if (const auto seq = decode_job_id(text)) {
    REPRISE_CHECK(decode_job_id(encode_job_id(*seq)) == seq);
  }
  if (const auto token = decode_lease_token(text)) {
    REPRISE_CHECK(decode_lease_token(encode_lease_token(*token)) == token);
  }
  if (const auto ulid = decode_ulid(text)) REPRISE_CHECK(decode_ulid(encode_ulid(*ulid)) == ulid);
  if (const auto found = seqs_with_id_prefix(text, 1000, 10)) {
    REPRISE_CHECK(found->size() <= 10);
    for (const Seq seq : *found) REPRISE_CHECK(seq >= 1 && seq < 1000);
  }
  if (const auto timer = TimerId::parse(text)) REPRISE_CHECK(timer->to_text() == text);
}

void check_texts(std::string_view text) {
  REPRISE_CHECK(base64_decode(base64_encode(text)) == text);
  if (const auto bytes = base64_decode(text)) REPRISE_CHECK(base64_encode(*bytes) == text);
  if (const auto bytes = parse_bytes(text)) {
    // For people, so rounded; whole units stay what they are.
    const auto again = parse_bytes(format_bytes(*bytes));
    if (again && *bytes % 1024 != 0) REPRISE_CHECK(*again <= *bytes + *bytes / 10 + 1);
    if (*bytes < 1024) REPRISE_CHECK(again == bytes);
  }
  const std::string_view cut = cut_at_character(text, 10);
  REPRISE_CHECK(cut.size() <= 10 && text.starts_with(cut));
  if (is_valid_utf8(text)) REPRISE_CHECK(is_valid_utf8(cut));
  const std::string_view middle = trimmed(text);
  REPRISE_CHECK(trimmed(middle) == middle);
  (void)check_webhook_url(text);
  const std::vector<std::string> words = {"retry", "attempts", "cooldown"};
  (void)did_you_mean(text, words);
}

// Patterns again, in the slow way that needs no thought.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  std::vector<bool> reached(text.size() + 1, false);
  reached[0] = true;
  for (const char c : pattern) {
    if (c == '*') {
      for (std::size_t i = 1; i <= text.size(); ++i) reached[i] = reached[i] || reached[i - 1];
      continue;
    }
    for (std::size_t i = text.size(); i > 0; --i) reached[i] = reached[i - 1] && text[i - 1] == c;
    reached[0] = false;
  }
  return reached[text.size()];
}

}  // namespace
}  // namespace reprise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const std::size_t end = text.find('\0'); end != text.npos) {
    const std::string_view pattern = text.substr(0, end);
    const std::string_view other = text.substr(end + 1);
    REPRISE_CHECK(matches_pattern(pattern, other) == matches_slowly(pattern, other));
  }
  check_duration(text);
  check_rate(text);
  check_timestamp(text);
  check_ids(text);
  check_texts(text);
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() {
  using namespace std::string_literals;
  return {"order.*.done\0order.7.done"s, encode_job_id(7),
          encode_lease_token({.job = {.queue = 1, .seq = 2}, .nonce = 3}),
          "queue-retry:shop/orders:" + encode_job_id(7)};
}
