#include "worker/external_item.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/json.h"
#include "base/json_view.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace reprise::worker {
namespace {

constexpr std::array<std::string_view, 4> kPhaseNames = {"taking", "running", "succeeded",
                                                         "failed"};
constexpr std::size_t kShownOutput = 200;

// FNV-1a, twice with different beginnings: names of notes and items without a key.
std::string hash_of(std::string_view text) {
  const auto fnv = [&](std::uint64_t hash) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    return hash;
  };
  return fmt::format("{:016x}{:016x}", fnv(0xcbf29ce484222325ULL), fnv(0x84222325cbf29ce4ULL));
}

std::optional<std::string> key_from(JsonView field) {
  if (field.is_string()) {
    std::string text = field.string_or("");
    return text.empty() ? std::nullopt : std::optional(std::move(text));
  }
  if (field.number()) return std::string(field.raw());
  return std::nullopt;
}

Result<std::string> key_of(JsonView item, std::string_view key_field, std::size_t index) {
  if (!key_field.empty()) {
    if (auto key = key_from(item[key_field])) return *std::move(key);
    return Error{Errc::invalid_field,
                 fmt::format("item {} has no text or number in its field '{}'", index, key_field)};
  }
  for (const std::string_view usual : {"id", "number"}) {
    if (auto key = key_from(item[usual])) return *std::move(key);
  }
  return hash_of(item.raw());
}

}  // namespace

Result<std::vector<ExternalItem>> parse_items(std::string_view output, std::string_view key_field) {
  if (const auto checked = Json::parse(output); !checked) {
    return Error{Errc::invalid_field,
                 fmt::format("the list is not JSON: {}; it begins: {}", checked.error().detail,
                             cut_at_character(output, kShownOutput))};
  }
  const JsonView list(output);
  if (!list.is_array()) {
    return Error{Errc::invalid_field, fmt::format("the list is not a JSON array; it begins: {}",
                                                  cut_at_character(output, kShownOutput))};
  }
  std::vector<ExternalItem> items;
  std::set<std::string> seen;
  std::size_t index = 0;
  for (const JsonView item : list.elements()) {
    auto key = key_of(item, key_field, index++);
    if (!key) return key.error();
    if (!seen.insert(*key).second) continue;
    items.push_back({*std::move(key), std::string(item.raw())});
  }
  return items;
}

std::string item_note_key(std::string_view ns, std::string_view queue, std::string_view item_key) {
  return fmt::format("{}{}/{}/{}", kItemNotes, ns, queue, hash_of(item_key));
}

std::string encode_item(const ItemRecord& record) {
  JsonWriter out;
  out.begin_object();
  out.key("namespace").value(record.ns);
  out.key("queue").value(record.queue);
  out.key("worker").value(record.worker);
  out.key("key").value(record.item.key);
  out.key("item").value(record.item.json);
  out.key("phase").value(kPhaseNames[static_cast<std::size_t>(record.phase)]);
  out.key("run").value(record.run);
  out.key("error").value(record.error);
  out.end_object();
  return std::string(out.text());
}

Result<ItemRecord> decode_item(std::string_view text) {
  const JsonView json(text);
  const std::string phase = json["phase"].string_or("");
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
    if (phase != kPhaseNames[i]) continue;
    return ItemRecord{
        .ns = json["namespace"].string_or(""),
        .queue = json["queue"].string_or(""),
        .worker = json["worker"].string_or(""),
        .item = {.key = json["key"].string_or(""), .json = json["item"].string_or("null")},
        .phase = static_cast<ItemPhase>(i),
        .run = json["run"].string_or(""),
        .error = json["error"].string_or("")};
  }
  return Error{Errc::corrupt, fmt::format("an external item's record cannot be read: {}",
                                          cut_at_character(text, kShownOutput))};
}

}  // namespace reprise::worker
