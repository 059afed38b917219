#include "spool/event_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/json_problem.h"
#include "base/text.h"
#include "base/ulid.h"

namespace reprise::spool {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kShownIdBytes = 60;

Error corrupt(std::string problem) { return Error{Errc::corrupt, std::move(problem)}; }

bool is_bookkeeping(std::string_view name) {
  return name == kAttemptsField || name == kFirstAttemptField || name == kLastErrorField;
}

std::string_view kind_of(JsonView value) {
  switch (value.raw().front()) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

// The grammar says "expected a value" to all of these, which tells a person nothing.
std::string_view what_is_there(std::string_view text, const JsonProblem& problem) {
  const auto rest = text.substr(problem.offset);
  if (rest.empty()) return problem.problem;
  if (rest.front() == '\0') return "a zero byte";
  if (utf8_character_bytes(rest) == 0) return "not UTF-8";
  return problem.problem;
}

Status check_json(std::string_view bytes) {
  if (bytes.find_first_not_of(kSpace) == std::string_view::npos) return corrupt("it is empty");
  if (bytes.starts_with(kByteOrderMark)) {
    return corrupt("not valid JSON: it begins with a byte order mark, which JSON must not have");
  }
  const auto problem = find_json_problem(bytes, JsonNumbers::any);
  if (!problem) return ok();
  return corrupt(fmt::format("not valid JSON: {} at {}", what_is_there(bytes, *problem),
                             describe_position(bytes, problem->offset)));
}

}  // namespace

Result<EventObject> EventObject::parse(std::string_view bytes) {
  REPRISE_TRY(check_json(bytes));
  const JsonView whole(bytes);
  if (!whole.is_object()) {
    return corrupt(fmt::format("an event is a JSON object; this is {}", kind_of(whole)));
  }
  EventObject object;
  object.text_ = whole.raw();
  object.members_ = whole.members();
  return object;
}

JsonView EventObject::operator[](std::string_view name) const {
  const auto found = std::find_if(members_.rbegin(), members_.rend(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members_.rend() ? JsonView() : found->second;
}

Result<std::string> EventObject::id() const {
  const JsonView value = (*this)["id"];
  if (!value.present()) return corrupt("`id` is missing");
  if (!value.is_string()) return corrupt(fmt::format("`id` is {}, no ULID", kind_of(value)));
  std::string id = value.string_or("");
  if (!decode_ulid(id)) {
    const auto shown = cut_at_character(id, kShownIdBytes);
    return corrupt(
        fmt::format("`id` is no ULID: \"{}{}\"", shown, shown.size() < id.size() ? "…" : ""));
  }
  return id;
}

// A member's text reaches from the end of the value before it to the end of its own, so its comma
// is in front. The first one that stays loses it when those before it have gone.
std::string EventObject::without_bookkeeping() const {
  if (std::ranges::none_of(members_, [](const auto& m) { return is_bookkeeping(m.first); })) {
    return std::string(text_);
  }
  std::string kept = "{";
  bool none_yet = true;
  std::size_t at = 1;
  for (const auto& [name, value] : members_) {
    const auto end =
        static_cast<std::size_t>(value.raw().data() - text_.data()) + value.raw().size();
    auto member = text_.substr(at, end - at);
    const bool is_first = at == 1;
    at = end;
    if (is_bookkeeping(name)) continue;
    if (none_yet && !is_first) member.remove_prefix(member.find(',') + 1);
    kept += member;
    none_yet = false;
  }
  kept += text_.substr(at);
  return kept;
}

}  // namespace reprise::spool
