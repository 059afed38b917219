// Budget: how much one call may do, in instructions of Lua and in time.
//
// Lua asks back every so many instructions; work that Lua's C functions do without any is charged
// by those who know of it. What is used up stays used up: the error that says so is raised again
// at every instruction, and pcall passes it on, so that no script goes on after it. The same road
// ends a call that needs what it does not have.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "hooks/host/lua.h"

namespace reprise::hooks {

std::int64_t monotonic_nanoseconds();

class Budget {
 public:
  enum class Stop : std::uint8_t { none, instructions, time, memory, needs_payload };

  explicit Budget(Duration timeout);

  // Before a call.
  void begin(lua_State* lua, std::int64_t now_nanoseconds);
  // In a call. Raises the error that cannot be caught when there is no more.
  void charge(lua_State* lua, std::uint64_t instructions);
  [[noreturn]] void stop(lua_State* lua, Stop why);
  // After an error was caught: if it cannot be, raises it again.
  void pass_on(lua_State* lua) const;

  Stop stopped() const { return stop_; }
  std::uint64_t used() const { return used_; }
  // For people, when stopped() for the first two reasons.
  std::string message() const;

 private:
  static void on_count(lua_State* lua, lua_Debug* where);
  bool time_is_up();

  // Constant after construction.
  const std::int64_t timeout_nanoseconds_;
  const std::uint64_t limit_;

  // Of this call.
  std::uint64_t used_ = 0;
  std::uint64_t next_look_ = 0;  // at the clock, in instructions used
  std::int64_t deadline_ = 0;
  std::int64_t processor_time_at_start_ = 0;  // 0: not read yet
  bool extended_ = false;
  Stop stop_ = Stop::none;
  int line_ = 0;  // where it stopped; 0: not known
};

}  // namespace reprise::hooks
