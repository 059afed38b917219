// Endings: a queue's dead or completed jobs by the time they ended, from the oldest or from the
// newest. Reads storage's list of endings, not the jobs.
// An entry may have nothing behind it: who reads the job finds out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "storage/keys.h"
#include "storage/storage.h"

namespace reprise {

struct Ended {
  storage::EndingKey key;
  std::uint64_t fingerprint{};
};

class Endings {
 public:
  Endings(const storage::Storage::Snapshot& snapshot, QueueNumber queue, storage::EndKind kind)
      : snapshot_(snapshot), queue_(queue), kind_(kind) {}

  // In [from, to), oldest first, at most `most`.
  Result<std::vector<Ended>> oldest(const storage::EndingKey& from, const storage::EndingKey& to,
                                    std::size_t most) const;
  // Before `before`, newest first, at most `most`; fewer only when there are no more. The nearer
  // its time is to the newest one, the quicker.
  Result<std::vector<Ended>> newest(const storage::EndingKey& before, std::size_t most) const;

  // Bounds: the first that ended at `at` or later, and the end of all.
  storage::EndingKey from(Timestamp at) const { return {queue_, kind_, at, 0}; }
  storage::EndingKey end() const { return {queue_, kind_, kNever, ~Seq{0}}; }

 private:
  Result<std::vector<Ended>> last_in(const storage::EndingKey& begin, const storage::EndingKey& to,
                                     std::size_t most) const;

  const storage::Storage::Snapshot& snapshot_;
  const QueueNumber queue_;
  const storage::EndKind kind_;
};

}  // namespace reprise
