// MemoryCap: all the memory of one Lua state, counted, and refused beyond a limit.
// Lua then collects its garbage and asks again, and if that is refused as well raises an error that
// a script may catch: it has no more memory for that.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::hooks {

class MemoryCap {
 public:
  explicit MemoryCap(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  MemoryCap(const MemoryCap&) = delete;
  MemoryCap& operator=(const MemoryCap&) = delete;

  // A lua_Alloc; `cap` is a MemoryCap.
  static void* allocate(void* cap, void* block, std::size_t old_size, std::size_t new_size);

  std::uint64_t used_bytes() const { return used_bytes_; }
  std::uint64_t limit_bytes() const { return limit_bytes_; }

 private:
  const std::uint64_t limit_bytes_;
  std::uint64_t used_bytes_ = 0;
};

}  // namespace reprise::hooks
