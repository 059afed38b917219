#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include "hooks/host/call_context.h"
#include "hooks/host/library.h"
#include "hooks/host/script_json.h"

namespace reprise::hooks {
namespace {

// Reads one value, by the letter of RFC 8259, straight onto Lua's stack.
class Decoder {
 public:
  Decoder(lua_State* lua, std::string_view text)
      : lua_(lua), begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  void document() {
    value(0);
    skip_space();
    if (at_ != end_) fail("text after the value");
  }

 private:
  [[noreturn]] void fail(const char* what) {
    luaL_error(lua_, "json.decode: %s at byte %I", what,
               static_cast<lua_Integer>(at_ - begin_) + 1);
    __builtin_unreachable();
  }
  char peek() const { return at_ == end_ ? '\0' : *at_; }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  void word(std::string_view expected) {
    if (std::string_view(at_, static_cast<std::size_t>(end_ - at_)).substr(0, expected.size()) !=
        expected) {
      fail("not a JSON value");
    }
    at_ += expected.size();
  }

  void value(int depth) {
    skip_space();
    if (at_ == end_) fail("the text ends too early");
    switch (*at_) {
      case '{':
        return object(depth + 1);
      case '[':
        return array(depth + 1);
      case '"':
        return string();
      case 't':
        word("true");
        return lua_pushboolean(lua_, 1);
      case 'f':
        word("false");
        return lua_pushboolean(lua_, 0);
      case 'n':
        word("null");
        return push_json_null(lua_);
      default:
        return number();
    }
  }

  void enter(int depth) {
    if (depth > kMaxScriptJsonDepth) fail("more than 100 levels");
    luaL_checkstack(lua_, 4, nullptr);
    ++at_;
    skip_space();
  }
  // After an element: true when there is another.
  bool more(char closing) {
    skip_space();
    if (take(closing)) return false;
    if (!take(',')) fail(closing == ']' ? "expected ',' or ']'" : "expected ',' or '}'");
    skip_space();
    return true;
  }

  void array(int depth) {
    enter(depth);
    lua_createtable(lua_, 0, 0);
    if (take(']')) {
      // So that it is an array again when it is encoded.
      luaL_setmetatable(lua_, kArrayMetatable);
      return;
    }
    lua_Integer index = 0;
    do {
      value(depth);
      lua_rawseti(lua_, -2, ++index);
    } while (more(']'));
  }

  void object(int depth) {
    enter(depth);
    lua_createtable(lua_, 0, 0);
    if (take('}')) return;
    do {
      if (peek() != '"') fail("expected a name in quotes");
      string();
      skip_space();
      if (!take(':')) fail("expected ':'");
      value(depth);
      lua_rawset(lua_, -3);
    } while (more('}'));
  }

  void string() {
    const char* const start = ++at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && !is_control(*at_)) ++at_;
    if (peek() == '"') {
      lua_pushlstring(lua_, start, static_cast<std::size_t>(at_ - start));
      ++at_;
      return;
    }
    std::string& text = context_of(lua_).buffer;
    text.assign(start, at_);
    while (!take('"')) {
      if (at_ == end_) fail("the text ends in a string");
      if (is_control(*at_)) fail("a control character in a string");
      if (*at_ != '\\') {
        text += *at_++;
        continue;
      }
      ++at_;
      escape(text);
    }
    lua_pushlstring(lua_, text.data(), text.size());
  }
  static bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20; }

  void escape(std::string& text) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (take('u')) return append_utf8(text, code_point());
    const std::size_t which = at_ == end_ ? std::string_view::npos : kNames.find(*at_);
    if (which == std::string_view::npos) fail("an unknown escape in a string");
    text += kMeant[which];
    ++at_;
  }
  std::uint32_t four_digits() {
    std::uint32_t code = 0;
    if (end_ - at_ < 4) fail("the text ends in a string");
    const auto [end, error] = std::from_chars(at_, at_ + 4, code, 16);
    if (end != at_ + 4 || error != std::errc{}) fail("expected four hexadecimal digits");
    at_ += 4;
    return code;
  }
  std::uint32_t code_point() {
    const std::uint32_t high = four_digits();
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || !take('\\') || !take('u')) fail("half a pair of surrogates");
    const std::uint32_t low = four_digits();
    if (low < 0xDC00 || low > 0xDFFF) fail("half a pair of surrogates");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }
  static void append_utf8(std::string& text, std::uint32_t code) {
    const auto part = [&](int shift, std::uint32_t mark) {
      text += static_cast<char>(((code >> shift) & (mark == 0x80 ? 0x3F : 0xFF)) | mark);
    };
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      part(6, 0xC0);
      part(0, 0x80);
    } else if (code < 0x10000) {
      part(12, 0xE0);
      part(6, 0x80);
      part(0, 0x80);
    } else {
      part(18, 0xF0);
      part(12, 0x80);
      part(6, 0x80);
      part(0, 0x80);
    }
  }

  bool digits() {
    const char* const start = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != start;
  }
  void number() {
    const char* const start = at_;
    take('-');
    if (!take('0') && !digits()) {
      at_ = start;
      fail("not a JSON value");
    }
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!digits()) fail("expected a digit");
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) take('-');
      if (!digits()) fail("expected a digit");
    }
    lua_Integer integer = 0;
    if (whole && std::from_chars(start, at_, integer).ec == std::errc{}) {
      return lua_pushinteger(lua_, integer);
    }
    push_float(start);
  }
  void push_float(const char* start) {
    double number = 0;
    if (std::from_chars(start, at_, number).ec != std::errc{}) {
      // Too large, or so small that it is zero; this one tells them apart.
      std::string& text = context_of(lua_).buffer;
      text.assign(start, at_);
      number = std::strtod(text.c_str(), nullptr);
    }
    if (std::isinf(number)) fail("a number that is too large");
    lua_pushnumber(lua_, number);
  }

  lua_State* const lua_;
  const char* const begin_;
  const char* at_;
  const char* const end_;
};

}  // namespace

int script_json_decode(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TSTRING);
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, 1, &size);
  context_of(lua).budget.charge(lua, 1 + size / 2);
  Decoder(lua, {text, size}).document();
  return 1;
}

}  // namespace reprise::hooks
