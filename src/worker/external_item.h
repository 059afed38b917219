// External items: what a list command prints, told apart by their keys, and what is remembered of
// those in hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reprise::worker {

struct ExternalItem {
  std::string key;   // 7 and "7" are one
  std::string json;  // as it was printed
};

// Of the items of one list, each key once: the first. `key_field` empty: id, then number, then a
// hash of the item. The error says what is wrong with the output; Errc::invalid_field.
Result<std::vector<ExternalItem>> parse_items(std::string_view output, std::string_view key_field);

// How far it has come; what the next server does about it follows from that.
enum class ItemPhase : std::uint8_t {
  taking,     // `take` runs, or has run: nobody knows
  running,    // it is ours, and its pipeline runs
  succeeded,  // `done` is to be told
  failed,     // `failed` is to be told
};

// An item in hand as it is stored, in a note of its own.
struct ItemRecord {
  std::string ns;
  std::string queue;
  std::string worker;
  ExternalItem item;
  ItemPhase phase{};
  std::string run;    // its id
  std::string error;  // of a failed one
};

inline constexpr std::string_view kItemNotes = "item/";
// The key may be anything, so its name has a hash of it instead.
std::string item_note_key(std::string_view ns, std::string_view queue, std::string_view item_key);
std::string encode_item(const ItemRecord& record);
Result<ItemRecord> decode_item(std::string_view text);

}  // namespace reprise::worker
