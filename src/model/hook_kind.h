// The two hooks of a queue, the ways in which one can fail, and what is done then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise {

enum class HookKind : std::uint8_t { on_enqueue = 0, on_failure = 1 };
inline constexpr std::size_t kHookKindCount = 2;
std::string_view hook_name(HookKind hook);  // also the name of the Lua function

// Why there is no answer.
enum class HookFault : std::uint8_t {
  error = 0,           // the script raised one, or used up its instructions
  timeout = 1,         // the process was killed at the end of the budget
  memory = 2,          // the script wanted more than it may have
  invalid_result = 3,  // it answered something that cannot be understood
  host_lost = 4,       // the process ended by itself, or could not be started
  breaker_open = 5,    // it was not even asked
};
inline constexpr std::size_t kHookFaultCount = 6;
std::string_view hook_fault_name(HookFault fault);

// What becomes of a job whose on_failure hook gives no answer.
enum class OnHookError : std::uint8_t { retry = 0, policy = 1, dlq = 2 };
std::string_view on_hook_error_name(OnHookError what);
std::optional<OnHookError> on_hook_error_from_name(std::string_view name);

}  // namespace reprise
