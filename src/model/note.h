// Note: a small durable record that a module above the broker keeps for itself, by a name that
// begins with its own: "project/shop", "worker/shop/shipper". The broker stores it and never looks
// inside.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace reprise {

inline constexpr std::size_t kMaxNoteKeyBytes = 1024;
inline constexpr std::size_t kMaxNoteValueBytes = 2 << 20;

struct Note {
  std::string key;
  std::string value;
  friend bool operator==(const Note&, const Note&) = default;
};

struct NoteChange {
  std::string key;
  std::optional<std::string> value;  // nothing: erase it
};

}  // namespace reprise
