#include "cli/reply_fields.h"

#include <algorithm>

#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

std::string in_words(std::string_view path) {
  std::string words(path);
  std::ranges::replace_if(
      words, [](char c) { return c == '.' || c == '_'; }, ' ');
  return words;
}

}  // namespace

void add_fields(Record& record, const std::string& path, JsonView value, std::size_t label_from) {
  const auto members = value.members();
  for (const auto& [name, member] : members) {
    add_fields(record, path + "." + name, member, label_from);
  }
  const auto elements = value.elements();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    add_fields(record, path + "." + std::to_string(i), elements[i], label_from);
  }
  if (!members.empty() || !elements.empty()) return;
  // An object that has nothing in it ends where the label would begin.
  const auto label = std::string_view(path).substr(std::min(label_from, path.size()));
  record.field(path, in_words(label), Cell(text_of(value)));
}

}  // namespace reprise::cli
