// Pace: how much of the disk's time a checkpoint takes. Commits on the same disk are noticeably
// faster when each of its writes is followed by a pause; but the next overlay gathers meanwhile,
// and commits wait when that is full. So it pauses as long as it is ahead: as long as the part of
// it that is done is larger than the part of the next overlay that is there. Threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace reprise::storage {

class Pace {
 public:
  explicit Pace(bool awaited = false) : awaited_(awaited) {}

  // A checkpoint begins, with so much to write.
  void begin(std::uint64_t bytes) {
    bytes_ = std::max<std::uint64_t>(bytes, 1);
    done_ = 0;
    gathered_ = 0;
  }
  // So much more of it is done.
  void advance(std::uint64_t bytes) { done_ += bytes; }
  // What the next overlay holds, as a part of what it may hold before another checkpoint begins.
  void set_gathered(double part) { gathered_ = part; }
  // Whether somebody waits for it, however far it is.
  void set_awaited(bool awaited) { awaited_ = awaited; }

  bool hurries() const {
    return awaited_ || gathered_ * static_cast<double>(bytes_) > static_cast<double>(done_);
  }

 private:
  std::atomic<std::uint64_t> bytes_{1};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<double> gathered_{0};
  std::atomic<bool> awaited_;
};

inline const Pace kFullSpeed(true);

}  // namespace reprise::storage
