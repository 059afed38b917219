// CallContext: what Lua's functions in C++ can reach while a call runs. One for each Lua state,
// found through the state itself.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hooks/host/budget.h"
#include "hooks/host/lua.h"
#include "hooks/host/memory_cap.h"
#include "hooks/protocol.h"

namespace reprise::hooks {

using CallOutcome = decltype(CallResult::outcome);
using ConfigValues = absl::flat_hash_map<std::string, std::string>;

// Repeatable from a seed; starts anew for each call.
class CallRandom {
 public:
  void begin(std::uint64_t seed, std::uint64_t call);
  bool was_used() const { return used_; }
  std::uint64_t next_u64();
  double next_unit();  // 0 <= result < 1

 private:
  std::uint64_t state_ = 0;
  bool used_ = false;
};

struct CallContext {
  CallContext(const HookLimits& limits, const ConfigValues& config_values)
      : memory(limits.memory_bytes), budget(limits.timeout), config(config_values) {}

  MemoryCap memory;
  Budget budget;
  const ConfigValues& config;
  CallRandom random;
  std::string buffer;  // for text that is made piece by piece; nobody keeps it

  // The call.
  HookKind hook{};
  std::string_view queue;
  const MessageView* message = nullptr;  // null while the script is loaded
  bool with_payloads = false;
  // Whether it has looked at more than HookResult::repeatable allows: the payload, config.
  bool saw_more = false;
  std::vector<std::string> log;
  CallOutcome outcome;

  // Whether it did nothing that has to be done anew for each job.
  bool is_repeatable() const { return !saw_more && !random.was_used() && log.empty(); }
};

inline CallContext& context_of(lua_State* lua) {
  return **static_cast<CallContext**>(lua_getextraspace(lua));
}

// As when Lua itself finds no memory.
[[noreturn]] void raise_memory_error(lua_State* lua);

}  // namespace reprise::hooks
