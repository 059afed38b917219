#include "hooks/host/memory_cap.h"

#include <cstdlib>

namespace reprise::hooks {

void* MemoryCap::allocate(void* cap, void* block, std::size_t old_size, std::size_t new_size) {
  auto& self = *static_cast<MemoryCap*>(cap);
  // For a new block Lua tells its kind in place of an old size.
  const std::size_t held = block == nullptr ? 0 : old_size;
  if (new_size == 0) {
    std::free(block);
    self.used_bytes_ -= held;
    return nullptr;
  }
  if (new_size > held && new_size - held > self.limit_bytes_ - self.used_bytes_) return nullptr;
  void* result = std::realloc(block, new_size);
  if (result != nullptr) self.used_bytes_ += new_size - held;
  return result;
}

}  // namespace reprise::hooks
