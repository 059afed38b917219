#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "hooks/host/call_context.h"
#include "hooks/host/library.h"
#include "hooks/host/message.h"
#include "hooks/host/script_json.h"

namespace reprise::hooks {
namespace {

class Encoder {
 public:
  explicit Encoder(lua_State* lua) : lua_(lua), call_(context_of(lua)), out_(call_.buffer) {
    out_.clear();
  }

  // The value on top of the stack, which stays.
  void value(int depth) {
    call_.budget.charge(lua_, 2);
    if (out_.size() > call_.memory.limit_bytes()) raise_memory_error(lua_);
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        return string();
      case LUA_TNUMBER:
        return number();
      case LUA_TBOOLEAN:
        out_ += lua_toboolean(lua_, -1) != 0 ? "true" : "false";
        return;
      case LUA_TNIL:
        out_ += "null";
        return;
      case LUA_TTABLE:
        return table(depth + 1);
      default:
        if (!is_json_null(lua_, -1)) fail("a %s has no JSON form", luaL_typename(lua_, -1));
        out_ += "null";
    }
  }

 private:
  enum class Shape { array, object };

  template <class... Arguments>
  [[noreturn]] void fail(const char* format, Arguments... arguments) {
    lua_pushfstring(lua_, format, arguments...);
    luaL_error(lua_, "json.encode: %s", lua_tostring(lua_, -1));
    __builtin_unreachable();
  }

  void string() {
    std::size_t size = 0;
    const char* text = lua_tolstring(lua_, -1, &size);
    call_.budget.charge(lua_, size / 4);
    append_json_string(out_, {text, size});
  }

  void number() {
    char text[40];
    std::to_chars_result end{};
    if (lua_isinteger(lua_, -1) != 0) {
      end = std::to_chars(text, text + sizeof text, lua_tointeger(lua_, -1));
    } else {
      const double number = lua_tonumber(lua_, -1);
      if (!std::isfinite(number)) fail("%f has no JSON form", number);
      end = std::to_chars(text, text + sizeof text, number);
    }
    out_.append(text, end.ptr);
  }

  bool has_metatable(const char* name) {
    if (lua_getmetatable(lua_, -1) == 0) return false;
    luaL_getmetatable(lua_, name);
    const bool same = lua_rawequal(lua_, -1, -2) != 0;
    lua_pop(lua_, 2);
    return same;
  }

  // Of the table on top of the stack.
  Shape shape() {
    const bool marked = has_metatable(kArrayMetatable);
    lua_Integer entries = 0;
    lua_Integer largest = 0;
    bool numbers = true;
    bool names = true;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      call_.budget.charge(lua_, 1);
      ++entries;
      const bool number = lua_isinteger(lua_, -2) != 0;
      const lua_Integer key = number ? lua_tointeger(lua_, -2) : 0;
      numbers = numbers && key >= 1;
      largest = std::max(largest, key);
      names = names && lua_type(lua_, -2) == LUA_TSTRING;
    }
    if (entries == 0) return marked ? Shape::array : Shape::object;
    if (numbers && largest == entries) return Shape::array;
    if (names && !marked) return Shape::object;
    fail("a table must have the keys 1 to n, or names alone");
  }

  void table(int depth) {
    if (depth > kMaxScriptJsonDepth) {
      fail("more than %d levels; perhaps a table is in itself", kMaxScriptJsonDepth);
    }
    luaL_checkstack(lua_, 6, nullptr);
    if (has_metatable(kMessageMetatable)) fill_message(lua_, -1);
    if (shape() == Shape::array) {
      array(depth);
    } else {
      object(depth);
    }
  }

  void array(int depth) {
    out_ += '[';
    const auto size = static_cast<lua_Integer>(lua_rawlen(lua_, -1));
    for (lua_Integer i = 1; i <= size; ++i) {
      if (i > 1) out_ += ',';
      lua_rawgeti(lua_, -1, i);
      value(depth);
      lua_pop(lua_, 1);
    }
    out_ += ']';
  }

  void object(int depth) {
    out_ += '{';
    bool first = true;
    for (lua_pushnil(lua_); lua_next(lua_, -2) != 0; lua_pop(lua_, 1)) {
      if (!first) out_ += ',';
      first = false;
      lua_pushvalue(lua_, -2);
      string();
      lua_pop(lua_, 1);
      out_ += ':';
      value(depth);
    }
    out_ += '}';
  }

  lua_State* const lua_;
  CallContext& call_;
  std::string& out_;
};

// json.array(t): t, which is an array also when it is empty.
int script_json_array(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 1);
  luaL_getmetatable(lua, kArrayMetatable);
  // Tables that are ours have metatables that must stay.
  if (lua_getmetatable(lua, 1) != 0) {
    luaL_argcheck(lua, lua_rawequal(lua, -1, -2) != 0, 1, "this table cannot be an array");
    lua_pop(lua, 1);
  }
  lua_setmetatable(lua, 1);
  return 1;
}

// Only its address counts.
const char kNull = 0;

}  // namespace

int script_json_encode(lua_State* lua) {
  luaL_checkany(lua, 1);
  lua_settop(lua, 1);
  Encoder(lua).value(0);
  const std::string& text = context_of(lua).buffer;
  lua_pushlstring(lua, text.data(), text.size());
  return 1;
}

void push_json_null(lua_State* lua) { lua_pushlightuserdata(lua, const_cast<char*>(&kNull)); }

bool is_json_null(lua_State* lua, int index) {
  return lua_islightuserdata(lua, index) && lua_touserdata(lua, index) == &kNull;
}

void push_json_library(lua_State* lua) {
  luaL_newmetatable(lua, kArrayMetatable);
  lua_pushnil(lua);
  lua_setfield(lua, -2, "__name");
  lua_pop(lua, 1);
  lua_createtable(lua, 0, 4);
  lua_pushcfunction(lua, script_json_decode);
  lua_setfield(lua, -2, "decode");
  lua_pushcfunction(lua, script_json_encode);
  lua_setfield(lua, -2, "encode");
  lua_pushcfunction(lua, script_json_array);
  lua_setfield(lua, -2, "array");
  push_json_null(lua);
  lua_setfield(lua, -2, "null");
}

}  // namespace reprise::hooks
