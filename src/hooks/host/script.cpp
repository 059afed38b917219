#include "hooks/host/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hooks/host/clean_text.h"
#include "hooks/host/library.h"
#include "hooks/host/message.h"
#include "hooks/host/verdict.h"

namespace reprise::hooks {
namespace {

// Garbage that is kept rather than collected after each call; a call that needs its memory gets it.
constexpr std::uint64_t kGarbageBytes = 256U << 10;
constexpr std::size_t kBufferKeptBytes = 64U << 10;

// The upvalues of run().
constexpr int kChunk = lua_upvalueindex(1);
constexpr int kEnvironmentMetatable = lua_upvalueindex(2);
constexpr int kMessageMetatableValue = lua_upvalueindex(3);
constexpr int kFunctionName = lua_upvalueindex(4);

// One call, or while there is no message a first look whether there can be any.
int run(lua_State* lua) {
  CallContext& call = context_of(lua);
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, kEnvironmentMetatable);
  lua_setmetatable(lua, 1);
  // Its only variable from outside is its environment.
  lua_pushvalue(lua, kChunk);
  lua_pushvalue(lua, 1);
  lua_setupvalue(lua, 2, 1);
  lua_call(lua, 0, 0);

  lua_pushvalue(lua, kFunctionName);
  if (lua_rawget(lua, 1) != LUA_TFUNCTION) {
    lua_pushfstring(lua, lua_isnil(lua, -1) ? "it does not define %s" : "%s is not a function",
                    hook_name(call.hook).data());
    return lua_error(lua);
  }
  if (call.message == nullptr) return 0;
  lua_createtable(lua, 0, 4);
  lua_pushvalue(lua, kMessageMetatableValue);
  lua_setmetatable(lua, -2);
  lua_call(lua, 1, 1);
  call.outcome = read_verdict(lua, call.hook);
  return 0;
}

// From the source on the stack to run() in the registry.
int prepare(lua_State* lua) {
  CallContext& call = context_of(lua);
  std::size_t size = 0;
  const char* source = lua_tolstring(lua, 1, &size);
  call.budget.charge(lua, size);
  const std::string name = fmt::format("={}", hook_name(call.hook));
  const int status = luaL_loadbufferx(lua, source, size, name.c_str(), "t");
  if (status == LUA_ERRMEM) raise_memory_error(lua);
  if (status != LUA_OK) return lua_error(lua);

  lua_createtable(lua, 0, 2);
  push_environment(lua);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");

  push_message_metatable(lua);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, LUA_REGISTRYINDEX, kMessageMetatable);

  lua_pushstring(lua, hook_name(call.hook).data());
  lua_pushcclosure(lua, run, 4);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &call);
  return 0;
}

}  // namespace

Script::Script(ScriptOptions options, const ConfigValues& config)
    : options_(std::move(options)), context_(options_.limits, config) {
  context_.hook = options_.hook;
  context_.queue = options_.queue;
  lua_.reset(lua_newstate(&MemoryCap::allocate, &context_.memory));
}

Result<std::unique_ptr<Script>> Script::load(ScriptOptions options, std::string_view source,
                                             const ConfigValues& config) {
  std::unique_ptr<Script> script(new Script(std::move(options), config));
  REPRISE_TRY(script->set_up(source));
  return script;
}

Status Script::set_up(std::string_view source) {
  const auto refused = [](std::string why) { return Error{Errc::invalid_script, std::move(why)}; };
  if (lua_ == nullptr) return refused("there is not enough memory for any script");
  if (source.find('\0') != std::string_view::npos) {
    return refused("it contains a NUL byte, so it is no text");
  }
  *static_cast<CallContext**>(lua_getextraspace(lua_.get())) = &context_;
  // Garbage is collected between calls, and within one when there is no memory left.
  lua_gc(lua_.get(), LUA_GCSTOP);

  // All that may want more memory than there is happens in protected calls; the source itself is
  // not Lua's yet.
  const auto push_source = [](lua_State* lua) {
    const auto& text = *static_cast<const std::string_view*>(lua_touserdata(lua, 1));
    lua_pushlstring(lua, text.data(), text.size());
    lua_replace(lua, 1);
    return prepare(lua);
  };
  lua_pushcfunction(lua_.get(), push_source);
  lua_pushlightuserdata(lua_.get(), &source);
  CallOutcome outcome = run_protected(1, monotonic_nanoseconds());
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) return refused(failure->message);

  lua_rawgetp(lua_.get(), LUA_REGISTRYINDEX, &context_);
  outcome = run_protected(0, monotonic_nanoseconds());
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) return refused(failure->message);
  tidy();
  return ok();
}

CallResult Script::call(const MessageView& message, bool with_payloads, std::int64_t started) {
  context_.message = &message;
  context_.with_payloads = with_payloads;
  context_.random.begin(options_.random_seed, ++calls_);
  lua_rawgetp(lua_.get(), LUA_REGISTRYINDEX, &context_);
  CallResult result{.outcome = run_protected(0, started)};
  context_.message = nullptr;
  result.repeatable =
      context_.is_repeatable() && std::holds_alternative<EnqueueVerdict>(result.outcome);
  result.log.swap(context_.log);
  return result;
}

CallOutcome Script::run_protected(int arguments, std::int64_t started) {
  context_.log.clear();
  context_.saw_more = false;
  context_.outcome = NeedsPayload{};
  context_.budget.begin(lua_.get(), started);
  CallOutcome outcome = outcome_of(lua_pcall(lua_.get(), arguments, 0, 0));
  lua_settop(lua_.get(), 0);
  return outcome;
}

CallOutcome Script::outcome_of(int status) {
  const auto out_of_memory = [&] {
    return HookFailure{HookFault::memory, fmt::format("the limit of {} bytes of memory was used up",
                                                      context_.memory.limit_bytes())};
  };
  switch (context_.budget.stopped()) {
    case Budget::Stop::instructions:
      return HookFailure{HookFault::error, context_.budget.message()};
    case Budget::Stop::time:
      return HookFailure{HookFault::timeout, context_.budget.message()};
    case Budget::Stop::memory:
      return out_of_memory();
    case Budget::Stop::needs_payload:
      return NeedsPayload{};
    case Budget::Stop::none:
      break;
  }
  if (status == LUA_OK) return std::move(context_.outcome);
  // Below: an exception of C++, which is only thrown for want of memory.
  if (status == LUA_ERRMEM || status < LUA_OK) return out_of_memory();
  return HookFailure{HookFault::error, error_text()};
}

// "on_failure:3: text" is Lua's way; people are told "line 3: text".
std::string Script::error_text() {
  lua_State* lua = lua_.get();
  if (lua_type(lua, -1) == LUA_TSTRING) {
    std::size_t size = 0;
    const char* bytes = lua_tolstring(lua, -1, &size);
    std::string_view text(bytes, size);
    const std::string prefix = fmt::format("{}:", hook_name(options_.hook));
    if (!text.starts_with(prefix)) return clean_text(text, kMaxHookMessageBytes);
    text.remove_prefix(prefix.size());
    return "line " + clean_text(text, kMaxHookMessageBytes - 5);
  }
  if (lua_type(lua, -1) == LUA_TNUMBER) return fmt::format("{}", lua_tonumber(lua, -1));
  return fmt::format("the script raised an error that is no text but a {} value",
                     luaL_typename(lua, -1));
}

void Script::tidy() {
  if (context_.buffer.capacity() > kBufferKeptBytes) std::string().swap(context_.buffer);
  if (context_.memory.used_bytes() < tidy_at_bytes_) return;
  lua_gc(lua_.get(), LUA_GCCOLLECT);
  tidy_at_bytes_ =
      context_.memory.used_bytes() + std::min(context_.memory.limit_bytes() / 4, kGarbageBytes);
}

}  // namespace reprise::hooks
