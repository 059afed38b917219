#include "spool/ingest_reply.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "spool/event.h"

namespace reprise::spool {
namespace {

constexpr std::array<std::string_view, 5> kWordFields{"error", "message", "detail", "reason",
                                                      "msg"};
constexpr std::size_t kShortWordsBytes = 300;
constexpr std::string_view kEventMark = "events[";

// Whole characters only.
std::string cut_words(std::string_view words, std::size_t max_bytes = kMaxLastErrorBytes) {
  // Bytes that are no text become longer by what stands for them, hence the second cut.
  const std::string text = valid_utf8(cut_at_character(words, max_bytes));
  return std::string(cut_at_character(text, max_bytes));
}

// The words that `value` is or holds; empty: none.
std::string words_in(const Json& value) {
  if (value.is_null()) return {};
  if (const std::string* text = value.string()) return cut_words(*text);
  if (const std::string* message = value["message"].string()) return cut_words(*message);
  return cut_words(value.dump());
}

// The words of something that is said about one event.
std::string words_about(const Json& element) {
  if (element.object() == nullptr) return words_in(element);
  for (const std::string_view field : kWordFields) {
    std::string words = words_in(element[field]);
    if (!words.empty()) return words;
  }
  return {};
}

std::optional<std::size_t> index_of(const Json& element, std::size_t count) {
  const auto index = element["index"].unsigned_integer();
  if (!index || *index >= count) return std::nullopt;
  return static_cast<std::size_t>(*index);
}

bool may_be_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The next N of "events[N]" in `text`, which becomes what stands behind it.
std::optional<std::size_t> next_event_mark(std::string_view& text, std::size_t count) {
  while (true) {
    const std::size_t at = text.find(kEventMark);
    if (at == std::string_view::npos) return std::nullopt;
    const bool own_word = at == 0 || !may_be_in_name(text[at - 1]);
    text.remove_prefix(at + kEventMark.size());
    std::size_t index = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
    const bool closed = end != text.data() + text.size() && *end == ']';
    if (own_word && problem == std::errc{} && closed && index < count) return index;
  }
}

// What a refusal says about single events; the first word about each one counts.
class Offenders {
 public:
  explicit Offenders(std::size_t count) : known_(count) {}

  void add(std::size_t index, std::string words) {
    if (known_[index]) return;
    known_[index] = true;
    found_.push_back({.index = index, .error = std::move(words)});
  }
  // An entry of a list of errors: it has an index, or names its event in some text.
  void add_entry(const Json& entry) {
    auto index = index_of(entry, known_.size());
    if (!index) {
      const std::string text = entry.dump();
      std::string_view left(text);
      index = next_event_mark(left, known_.size());
    }
    if (index) add(*index, words_about(entry));
  }
  void add_list(const Json& list) {
    if (const auto* entries = list.array()) {
      for (const Json& entry : *entries) add_entry(entry);
    }
  }
  void add_indexed(const Json& object) {
    if (const auto index = index_of(object, known_.size())) add(*index, words_about(object));
  }
  void add_rejected(const Json& results) {
    const auto* entries = results.array();
    if (entries == nullptr) return;
    for (const Json& entry : *entries) {
      if (entry["status"].string_or("") == "rejected") add_indexed(entry);
    }
  }

  bool empty() const { return found_.empty(); }
  std::vector<Offender> take() { return std::move(found_); }

 private:
  std::vector<bool> known_;
  std::vector<Offender> found_;
};

std::string first_line(std::string_view body) {
  const std::size_t begin = body.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  body.remove_prefix(begin);
  return cut_words(body.substr(0, body.find_first_of("\r\n")));
}

Verdict verdict_named(const std::string* status) {
  if (status == nullptr) return Verdict::none;
  if (*status == "accepted") return Verdict::accepted;
  if (*status == "duplicate") return Verdict::duplicate;
  if (*status == "rejected") return Verdict::rejected;
  return Verdict::none;
}

// The words that stand in a list of their own, for those rejected without any.
void add_words_from(const Json& errors, std::vector<EventVerdict>& verdicts) {
  const auto* entries = errors.array();
  if (entries == nullptr) return;
  for (const Json& entry : *entries) {
    const auto index = index_of(entry, verdicts.size());
    if (!index) continue;
    EventVerdict& verdict = verdicts[*index];
    if (verdict.verdict == Verdict::rejected && verdict.error.empty()) {
      verdict.error = words_about(entry);
    }
  }
}

}  // namespace

std::optional<std::vector<EventVerdict>> parse_results(std::string_view body, std::size_t count) {
  const auto reply = Json::parse(body);
  if (!reply) return std::nullopt;
  const auto* results = (*reply)["results"].array();
  if (results == nullptr) return std::nullopt;

  std::vector<EventVerdict> verdicts(count);
  std::vector<bool> told(count);
  for (const Json& entry : *results) {
    const auto index = index_of(entry, count);
    if (!index) continue;
    if (told[*index]) {
      verdicts[*index] = {};
      continue;
    }
    told[*index] = true;
    EventVerdict& verdict = verdicts[*index];
    verdict.verdict = verdict_named(entry["status"].string());
    if (verdict.verdict == Verdict::rejected) verdict.error = words_about(entry);
  }
  add_words_from((*reply)["errors"], verdicts);
  return verdicts;
}

std::vector<Offender> named_offenders(std::string_view body, std::size_t count) {
  Offenders offenders(count);
  if (const auto reply = Json::parse(body)) {
    const Json& error = (*reply)["error"];
    for (const Json* const part : {&*reply, &error}) {
      for (const std::string_view list : {"errors", "details", "detail"}) {
        offenders.add_list((*part)[list]);
      }
    }
    offenders.add_rejected((*reply)["results"]);
    for (const Json* const part : {&(*reply)["details"], &error["details"], &error, &*reply}) {
      offenders.add_indexed(*part);
    }
  }
  if (!offenders.empty()) return offenders.take();

  std::string_view left(body);
  while (const auto index = next_event_mark(left, count)) {
    offenders.add(*index, refusal_text(body));
  }
  return offenders.take();
}

std::string refusal_text(std::string_view body) {
  if (const auto reply = Json::parse(body); reply && reply->object() != nullptr) {
    std::string words = words_about(*reply);
    if (!words.empty()) return words;
  }
  return first_line(body);
}

std::string short_refusal_text(std::string_view body) {
  return cut_words(refusal_text(body), kShortWordsBytes);
}

std::optional<Duration> retry_after_of(std::string_view body) {
  const auto reply = Json::parse(body);
  if (!reply) return std::nullopt;
  for (const Json* const part : {&*reply, &(*reply)["error"]}) {
    const auto seconds = (*part)["retry_after_seconds"].number();
    if (!seconds || !(*seconds >= 0)) continue;
    const std::chrono::duration<double> bounded(
        std::min(*seconds, std::chrono::duration<double>(kMaxRetryAfter).count()));
    return std::chrono::ceil<Duration>(bounded);
  }
  return std::nullopt;
}

}  // namespace reprise::spool
