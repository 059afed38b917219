#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "base/ids.h"

namespace reprise {
namespace {

void fill_from_kernel(void* out, std::size_t size) {
  auto* next = static_cast<unsigned char*>(out);
  while (size > 0) {
    const ssize_t got = ::getrandom(next, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();  // a predictable lease token is worse than no server
    }
    next += got;
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace

std::uint64_t SystemRandom::next_u64() {
  if (used_ == block_.size()) {
    fill_from_kernel(block_.data(), sizeof(block_));
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t SeededRandom::next_u64() {
  state_ += 0x9E3779B97F4A7C15ULL;
  return scramble(state_);
}

}  // namespace reprise
