#include "runbook/node.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"

namespace reprise::runbook {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

void write(JsonWriter& out, const Node& node) {
  switch (node.kind) {
    case Node::Kind::boolean:
    case Node::Kind::integer:
    case Node::Kind::real:
      out.raw(node.text);
      return;
    case Node::Kind::text:
      out.value(node.text);
      return;
    case Node::Kind::list:
      out.begin_array();
      for (const Node& item : node.items) write(out, item);
      out.end_array();
      return;
    case Node::Kind::table:
      out.begin_object();
      for (const Member& member : node.members) {
        out.key(member.key);
        write(out, member.value);
      }
      out.end_object();
      return;
    case Node::Kind::null:
    case Node::Kind::time:
      out.null();
      return;
  }
}

}  // namespace

const Member* Node::find(std::string_view key) const {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? nullptr : &*found;
}

std::string_view Node::kind_name() const {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
    case Kind::real:
      return "a number";
    case Kind::text:
      return "text";
    case Kind::list:
      return "a list";
    case Kind::table:
      return "a table";
    case Kind::time:
      return "a date or time";
  }
  return "something else";
}

const Node* first_without_json(const Node& node) {
  if (node.is(Node::Kind::time)) return &node;
  if (node.is(Node::Kind::real) && node.text.find_first_of("0123456789") == std::string::npos) {
    return &node;
  }
  for (const Node& item : node.items) {
    if (const Node* found = first_without_json(item)) return found;
  }
  for (const Member& member : node.members) {
    if (const Node* found = first_without_json(member.value)) return found;
  }
  return nullptr;
}

std::string to_json(const Node& node) {
  JsonWriter out;
  write(out, node);
  return out.take();
}

Position position_at(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto characters =
      std::ranges::count_if(before.substr(line_start), [](char c) { return !is_continuation(c); });
  return {.line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1),
          .column = static_cast<std::uint32_t>(characters + 1)};
}

std::optional<std::size_t> find_bad_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = utf8_character_bytes(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::nullopt;
}

}  // namespace reprise::runbook
