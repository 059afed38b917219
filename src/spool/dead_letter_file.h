// DeadLetterFile: what a file in dead-letter/ says: an envelope, ours or another program's, an
// event as it is, or neither.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "spool/dead_letters.h"

namespace reprise::spool {

// An event at its largest fits, with all its bookkeeping, several times.
inline constexpr std::size_t kMaxEnvelopeBytes = 4 << 20;

struct DeadLetterFile {
  DeadLetter letter;
  std::string event;       // its JSON, without bookkeeping; empty: there is none
  std::string queue_name;  // what it is called in queue/
  std::string raw_name;    // of its bytes; empty: it has none
  bool is_json = false;
};

// `content` was read from dead-letter/`name`, which ends with .json, and is whole or too large.
DeadLetterFile parse_dead_letter(const std::string& name, const FileContent& content);
// Bytes without an envelope.
DeadLetter orphaned_bytes(const std::string& name, const FileContent& content);

// "01J….json" and "01J….raw" → "01J…"
std::string_view stem_of(std::string_view name);
// The n-th name to try for what should be called `name`: that itself, then "01J…~1.json".
std::string numbered_name(std::string_view name, int number);
// With ".raw" in place of ".json".
std::string raw_name_for(std::string_view name);

}  // namespace reprise::spool
