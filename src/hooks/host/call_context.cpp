#include "hooks/host/call_context.h"

namespace reprise::hooks {
namespace {

// SplitMix64: its steps and its mixing function.
constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace

void CallRandom::begin(std::uint64_t seed, std::uint64_t call) {
  state_ = mixed(seed ^ mixed(call + kStep));
  used_ = false;
}

std::uint64_t CallRandom::next_u64() {
  used_ = true;
  state_ += kStep;
  return mixed(state_);
}

double CallRandom::next_unit() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

void raise_memory_error(lua_State* lua) {
  // Lua has no function for it, but asking for more than all there is does it.
  lua_newuserdatauv(lua, context_of(lua).memory.limit_bytes() + 1, 0);
  __builtin_unreachable();
}

}  // namespace reprise::hooks
