// BatchBuilder: reads a run's files one after the other and makes batches of those that are to be
// sent (docs/spool.md, "Draining", 1, 2 and 4). Whatever is not sent is settled on the way.
// Threads: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spool/drain.h"
#include "spool/settle.h"
#include "spool/spool_files.h"

namespace reprise::spool {

class BatchBuilder {
 public:
  // `names` of files in queue/, in their order. The others must outlive it.
  BatchBuilder(const SpoolFiles& files, Settler& settler, const Pauses& pauses,
               DrainOptions options, std::vector<std::string> names)
      : files_(files),
        settler_(settler),
        pauses_(pauses),
        options_(options),
        names_(std::move(names)) {}

  // Nothing is left to be read or sent.
  bool at_end() const { return next_ == names_.size() && !carried_; }
  std::uint64_t files_read() const { return next_; }
  // Empty: the end, or an interrupt.
  std::vector<QueuedEvent> next();

 private:
  // The next file that is to be sent.
  std::optional<QueuedEvent> read_next();
  std::optional<QueuedEvent> read_one(const std::string& name);

  const SpoolFiles& files_;
  Settler& settler_;
  const Pauses& pauses_;
  const DrainOptions options_;
  const std::vector<std::string> names_;
  std::size_t next_ = 0;
  std::optional<QueuedEvent> carried_;  // did not fit the batch before
};

}  // namespace reprise::spool
