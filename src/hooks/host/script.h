// Script: one hook of one queue, in a Lua state of its own.
//
// Each call runs the script's text anew in a new environment, so nothing of one call is there at
// the next. Whatever a script does ends as an outcome, within its limits of memory, instructions
// and, where Lua can be interrupted, time; for the rest the broker has its deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hooks/host/call_context.h"
#include "hooks/host/lua.h"
#include "hooks/protocol.h"

namespace reprise::hooks {

struct ScriptOptions {
  HookKind hook{};
  std::string queue;
  HookLimits limits;
  std::uint64_t random_seed{};
};

class Script {
 public:
  // Errc::invalid_script: it does not compile, fails while it is loaded, or does not define its
  // function; the detail is for people and names the line. `config` must outlive it.
  static Result<std::unique_ptr<Script>> load(ScriptOptions options, std::string_view source,
                                              const ConfigValues& config);

  // `started` is the time of CLOCK_MONOTONIC that the call's budget counts from.
  CallResult call(const MessageView& message, bool with_payloads, std::int64_t started);
  // Between calls: throws away what earlier ones left, when it is much.
  void tidy();

 private:
  struct CloseState {
    void operator()(lua_State* lua) const { lua_close(lua); }
  };

  Script(ScriptOptions options, const ConfigValues& config);
  Status set_up(std::string_view source);
  // Runs the function below its arguments on Lua's stack, and takes all off.
  CallOutcome run_protected(int arguments, std::int64_t started);
  CallOutcome outcome_of(int status);
  std::string error_text();

  const ScriptOptions options_;
  CallContext context_;
  std::uint64_t calls_ = 0;
  std::uint64_t tidy_at_bytes_ = 0;
  std::unique_ptr<lua_State, CloseState> lua_;  // after the context: it is closed before that ends
};

}  // namespace reprise::hooks
