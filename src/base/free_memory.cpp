#include "base/free_memory.h"

#include <malloc.h>

#include <cstddef>

// jemalloc's, in binaries that it is linked to; in others null.
extern "C" __attribute__((weak)) int mallctl(const char* name, void* old_value,
                                             std::size_t* old_size, void* new_value,
                                             std::size_t new_size);

namespace reprise {

void give_back_free_memory() {
  if (mallctl == nullptr) {
    ::malloc_trim(0);
    return;
  }
  // 4096 is MALLCTL_ARENAS_ALL. There is nothing to be done about a failure.
  (void)mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace reprise
