#include "hooks/host/message.h"

#include <array>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "hooks/host/call_context.h"

namespace reprise::hooks {
namespace {

void push(lua_State* lua, std::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

void push(lua_State* lua, std::uint64_t number) {
  lua_pushinteger(lua, static_cast<lua_Integer>(number));
}

void push_headers(lua_State* lua, CallContext& call) {
  const PackedStrings& headers = call.message->headers;
  call.budget.charge(lua, headers.count);
  lua_createtable(lua, 0, static_cast<int>(headers.count / 2));
  ByteReader reader(headers.bytes);
  for (std::uint32_t i = 0; i < headers.count; i += 2) {
    push(lua, reader.bytes());
    push(lua, reader.bytes());
    lua_rawset(lua, -3);
  }
}

void push_throttle_keys(lua_State* lua, CallContext& call) {
  const PackedStrings& keys = call.message->throttle_keys;
  call.budget.charge(lua, keys.count);
  lua_createtable(lua, static_cast<int>(keys.count), 0);
  ByteReader reader(keys.bytes);
  for (std::uint32_t i = 0; i < keys.count; ++i) {
    push(lua, reader.bytes());
    lua_rawseti(lua, -2, static_cast<lua_Integer>(i) + 1);
  }
}

void push_payload(lua_State* lua, CallContext& call) {
  call.saw_more = true;
  if (!call.with_payloads) call.budget.stop(lua, Budget::Stop::needs_payload);
  call.budget.charge(lua, call.message->payload.size() / 16);
  push(lua, call.message->payload);
}

void push_payload_size(lua_State* lua, CallContext& call) {
  call.saw_more = true;
  push(lua, call.message->payload_size);
}

void push_first_attempt_at(lua_State* lua, CallContext& call) {
  const auto time = call.message->first_attempt_at.time_since_epoch();
  lua_pushinteger(lua, std::chrono::floor<std::chrono::milliseconds>(time).count());
}

struct Field {
  std::string_view name;
  void (*push)(lua_State*, CallContext&);
};

constexpr auto kOnFailureFields = std::to_array<Field>({
    {"error", [](lua_State* lua, CallContext& call) { push(lua, call.message->error); }},
    {"error_type", [](lua_State* lua, CallContext& call) { push(lua, call.message->error_type); }},
    {"headers", push_headers},
    {"failures",
     [](lua_State* lua, CallContext& call) { push(lua, std::uint64_t{call.message->failures}); }},
    {"attempts",
     [](lua_State* lua, CallContext& call) { push(lua, std::uint64_t{call.message->attempts}); }},
    {"payload", push_payload},
    {"payload_size", push_payload_size},
    {"id", [](lua_State* lua, CallContext& call) { push(lua, call.message->id); }},
    {"queue", [](lua_State* lua, CallContext& call) { push(lua, call.queue); }},
    {"first_attempt_at", push_first_attempt_at},
});

constexpr auto kOnEnqueueFields = std::to_array<Field>({
    {"headers", push_headers},
    {"payload", push_payload},
    {"payload_size", push_payload_size},
    {"priority",
     [](lua_State* lua, CallContext& call) { push(lua, std::uint64_t{call.message->priority}); }},
    {"queue", [](lua_State* lua, CallContext& call) { push(lua, call.queue); }},
    {"fairness_key",
     [](lua_State* lua, CallContext& call) { push(lua, call.message->fairness_key); }},
    {"weight",
     [](lua_State* lua, CallContext& call) { push(lua, std::uint64_t{call.message->weight}); }},
    {"throttle_keys", push_throttle_keys},
});

std::span<const Field> fields_of(HookKind hook) {
  if (hook == HookKind::on_failure) return kOnFailureFields;
  return kOnEnqueueFields;
}

// __index: what is asked for is made, and stays.
int index_message(lua_State* lua) {
  std::size_t size = 0;
  const char* name = lua_type(lua, 2) == LUA_TSTRING ? lua_tolstring(lua, 2, &size) : nullptr;
  CallContext& call = context_of(lua);
  for (const Field& field : fields_of(call.hook)) {
    if (field.name != std::string_view(name, size)) continue;
    field.push(lua, call);
    lua_pushvalue(lua, 2);
    lua_pushvalue(lua, -2);
    lua_rawset(lua, 1);
    return 1;
  }
  return 0;
}

// Scripts get hold of it, and may call it with anything.
int next_field(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  return lua_next(lua, 1) != 0 ? 2 : (lua_pushnil(lua), 1);
}

int message_pairs(lua_State* lua) {
  fill_message(lua, 1);
  lua_pushcfunction(lua, next_field);
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

}  // namespace

void push_message_metatable(lua_State* lua) {
  lua_createtable(lua, 0, 3);
  lua_pushcfunction(lua, index_message);
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, message_pairs);
  lua_setfield(lua, -2, "__pairs");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
}

void fill_message(lua_State* lua, int index) {
  index = lua_absindex(lua, index);
  CallContext& call = context_of(lua);
  for (const Field& field : fields_of(call.hook)) {
    push(lua, field.name);
    lua_pushvalue(lua, -1);
    // What the script put in its place stays.
    if (lua_rawget(lua, index) == LUA_TNIL) {
      lua_pop(lua, 1);
      field.push(lua, call);
      lua_rawset(lua, index);
    } else {
      lua_pop(lua, 2);
    }
  }
}

}  // namespace reprise::hooks
