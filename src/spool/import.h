// Import: raw event files of another directory become spooled events (docs/spool.md, "Adding").
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/ulid.h"
#include "spool/outbox.h"

namespace reprise::spool {

struct ImportResult {
  struct Skipped {
    std::string file;
    std::string reason;
  };
  std::uint64_t imported = 0;
  std::uint64_t already_queued = 0;
  std::vector<Skipped> skipped;
  std::uint64_t dropped = 0;
};

struct ImportOptions {
  bool remove = false;  // files that are in the spool afterwards
  std::function<void(std::uint64_t done, std::uint64_t found)> progress;
};

// On an error (the directory cannot be read, the spool is full or cannot be written) `result` tells
// what was done until then.
Status import_events(const std::filesystem::path& from, Outbox& outbox, UlidSource& ids,
                     const Clock& clock, const ImportOptions& options, ImportResult& result);

}  // namespace reprise::spool
