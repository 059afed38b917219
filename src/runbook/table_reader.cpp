#include "runbook/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/json_fields.h"

namespace reprise::runbook {

const Member* TableReader::take(std::string_view name) {
  if (std::ranges::find(known_, name) == known_.end()) known_.emplace_back(name);
  const Member* found = table_.find(name);
  return found == nullptr || found->value.is(Node::Kind::null) ? nullptr : found;
}

Subject TableReader::subject_of(std::string_view name) const {
  const Member* found = table_.find(name);
  return found == nullptr ? subject_ : subject_.at(name, found->position);
}

void TableReader::error(std::string_view name, std::string message) {
  findings_.error(subject_of(name), std::move(message));
}

// JsonFields knows the kinds, and has the words for what is none of them.
template <class T>
bool TableReader::read_as(std::string_view name, T& out) {
  const Member* member = take(name);
  if (member == nullptr) return false;
  if (const Node* strange = first_without_json(member->value)) {
    error(name, fmt::format("must not be {}", strange->kind_name()));
    return false;
  }
  auto value = Json::parse(to_json(member->value));
  if (!value) {
    error(name, value.error().detail);
    return false;
  }
  const Json object(Json::Object{{member->key, std::move(*value)}});
  JsonFields fields(object);
  if (fields.read(name, out)) return true;
  if (const Status status = fields.finish(); !status) {
    // Without the name, which the finding has already.
    error(name, status.error().detail.substr(name.size() + 2));
  }
  return false;
}

bool TableReader::read(std::string_view name, std::string& out) {
  if (!read_as(name, out)) return false;
  if (!out.empty()) return true;
  error(name, "must not be empty");
  return false;
}

bool TableReader::read(std::string_view name, bool& out) { return read_as(name, out); }

bool TableReader::read(std::string_view name, std::uint32_t& out, std::uint32_t least,
                       std::uint32_t most) {
  const Member* member = take(name);
  const bool is_number = member != nullptr && member->value.is(Node::Kind::integer);
  std::uint32_t number = 0;
  // A number of any size and sign is told the range.
  const auto parsed = is_number ? Json::parse(member->value.text) : Result<Json>(Json());
  const auto whole = parsed ? parsed->unsigned_integer() : std::nullopt;
  if (is_number && (!whole || *whole < least || *whole > most)) {
    error(name, fmt::format("must be between {} and {}, got {}", least, most, member->value.text));
    return false;
  }
  if (!read_as(name, number)) return false;
  if (number < least || number > most) {
    error(name, fmt::format("must be between {} and {}, got {}", least, most, number));
    return false;
  }
  out = number;
  return true;
}

bool TableReader::read(std::string_view name, Duration& out) {
  Duration duration{};
  if (!read_as(name, duration)) return false;
  if (duration <= Duration::zero()) {
    error(name, "must be more than 0");
    return false;
  }
  out = duration;
  return true;
}

bool TableReader::read(std::string_view name, Duration& out, Duration least, Duration most) {
  Duration duration{};
  if (!read_as(name, duration)) return false;
  if (duration < least || duration > most) {
    error(name, fmt::format("must be between {} and {}, got {}", format_duration(least),
                            format_duration(most), format_duration(duration)));
    return false;
  }
  out = duration;
  return true;
}

void TableReader::finish() {
  for (const Member& member : table_.members) {
    if (std::ranges::find(known_, member.key) != known_.end()) continue;
    findings_.error(
        subject_.at(member.key, member.position),
        fmt::format("unknown field '{}'{}", member.key, findings_.suggestion(member.key, known_)));
  }
}

}  // namespace reprise::runbook
