#include "hooks/host/verdict.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "hooks/host/clean_text.h"
#include "model/limits.h"

namespace reprise::hooks {
namespace {

constexpr double kMaxDelayMs = static_cast<double>(
    std::chrono::duration_cast<std::chrono::milliseconds>(kMaxHookDelay).count());

// What is wrong; empty: nothing.
using Problem = std::string;

std::string_view string_at(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, index, &size);
  return {text, size};
}

// A value as it is named in a message.
std::string described(lua_State* lua, int index) {
  switch (lua_type(lua, index)) {
    case LUA_TNUMBER:
      return lua_isinteger(lua, index) != 0 ? fmt::format("{}", lua_tointeger(lua, index))
                                            : fmt::format("{}", lua_tonumber(lua, index));
    case LUA_TBOOLEAN:
      return lua_toboolean(lua, index) != 0 ? "true" : "false";
    case LUA_TNIL:
      return "nil";
    default:
      return fmt::format("a {}", luaL_typename(lua, index));
  }
}

Problem no_string(lua_State* lua, std::string_view name) {
  return fmt::format("{} must be a string, not {}", name, described(lua, -1));
}

Problem read_text(lua_State* lua, std::string_view name, std::size_t most, std::string& into) {
  if (lua_type(lua, -1) != LUA_TSTRING) return no_string(lua, name);
  const std::string_view text = string_at(lua, -1);
  if (text.size() > most) {
    return fmt::format("{} has {} bytes, at most {} are allowed", name, text.size(), most);
  }
  if (!is_valid_utf8(text)) return fmt::format("{} is not valid UTF-8", name);
  into = text;
  return {};
}

Problem read_scheduling_key(lua_State* lua, std::string_view name, std::string& into) {
  if (lua_type(lua, -1) != LUA_TSTRING) return no_string(lua, name);
  const std::string_view key = string_at(lua, -1);
  const std::string problem = scheduling_key_problem(key);
  if (!problem.empty()) return fmt::format("{} {}", name, problem);
  into = key;
  return {};
}

Problem read_action(lua_State* lua, FailureVerdict& verdict) {
  const bool is_text = lua_type(lua, -1) == LUA_TSTRING;
  const std::string_view action = is_text ? string_at(lua, -1) : std::string_view();
  if (action != "retry" && action != "dlq") {
    return fmt::format(
        "action must be \"retry\" or \"dlq\", not {}",
        is_text ? fmt::format("\"{}\"", clean_text(action, 40)) : described(lua, -1));
  }
  verdict.retry = action == "retry";
  return {};
}

Problem read_delay(lua_State* lua, FailureVerdict& verdict) {
  const double delay = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : NAN;
  if (!(delay >= 0 && delay <= kMaxDelayMs)) {
    return fmt::format("delay_ms must be a number from 0 to {:.0f}, not {}", kMaxDelayMs,
                       described(lua, -1));
  }
  verdict.delay = Duration(std::llround(delay * 1000));
  return {};
}

Problem read_weight(lua_State* lua, EnqueueVerdict& verdict) {
  int whole = 0;
  const lua_Integer weight = lua_type(lua, -1) == LUA_TNUMBER ? lua_tointegerx(lua, -1, &whole) : 0;
  if (whole == 0 || weight < 1 || weight > lua_Integer{kMaxWeight}) {
    return fmt::format("weight must be a whole number from 1 to {}, not {}", kMaxWeight,
                       described(lua, -1));
  }
  verdict.weight = static_cast<std::uint32_t>(weight);
  return {};
}

Problem read_throttle_keys(lua_State* lua, EnqueueVerdict& verdict) {
  if (lua_type(lua, -1) != LUA_TTABLE) {
    return fmt::format("throttle_keys must be a list of names, not {}", described(lua, -1));
  }
  std::size_t entries = 0;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    if (++entries > kMaxThrottleKeys) {
      lua_pop(lua, 2);
      return fmt::format("throttle_keys has more than {} names", kMaxThrottleKeys);
    }
  }
  auto& keys = verdict.throttle_keys.emplace(entries);
  for (std::size_t i = 0; i < entries; ++i) {
    // As many entries as there are numbers from 1 on: there can be no other key.
    const bool there = lua_rawgeti(lua, -1, static_cast<lua_Integer>(i) + 1) != LUA_TNIL;
    Problem problem =
        there ? read_scheduling_key(lua, fmt::format("throttle_keys[{}]", i + 1), keys[i])
              : "throttle_keys must be a list: names at 1, 2, 3 and so on";
    lua_pop(lua, 1);
    if (!problem.empty()) return problem;
  }
  return {};
}

template <class Verdict>
struct Field {
  std::string name;
  Problem (*read)(lua_State*, Verdict&);  // the value is on top of the stack, and stays
};

const std::vector<Field<FailureVerdict>>& failure_fields() {
  static const std::vector<Field<FailureVerdict>> fields = {
      {"action", read_action},
      {"delay_ms", read_delay},
      {"reason",
       [](lua_State* lua, FailureVerdict& verdict) {
         return read_text(lua, "reason", kMaxReasonBytes, verdict.reason);
       }},
  };
  return fields;
}

const std::vector<Field<EnqueueVerdict>>& enqueue_fields() {
  static const std::vector<Field<EnqueueVerdict>> fields = {
      {"fairness_key",
       [](lua_State* lua, EnqueueVerdict& verdict) {
         return read_scheduling_key(lua, "fairness_key", verdict.fairness_key.emplace());
       }},
      {"weight", read_weight},
      {"throttle_keys", read_throttle_keys},
      {"reject",
       [](lua_State* lua, EnqueueVerdict& verdict) {
         return read_text(lua, "reject", kMaxRejectBytes, verdict.reject.emplace());
       }},
  };
  return fields;
}

// The key of the field is at -2.
template <class Verdict>
Problem unknown_field(lua_State* lua, const std::vector<Field<Verdict>>& fields) {
  if (lua_type(lua, -2) != LUA_TSTRING) {
    return fmt::format("unknown field [{}]", described(lua, -2));
  }
  const std::string name = clean_text(string_at(lua, -2), 100);
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.name);
  auto meant = did_you_mean(name, names);
  // Too far for a typo, and yet: "delay".
  for (const std::string& candidate : names) {
    if (!meant && name.size() > 3 && candidate.starts_with(name)) meant = candidate;
  }
  return fmt::format("unknown field '{}'{}", name,
                     meant ? fmt::format("; did you mean '{}'?", *meant) : std::string());
}

template <class Verdict>
Problem read_field(lua_State* lua, const std::vector<Field<Verdict>>& fields, Verdict& verdict) {
  if (lua_type(lua, -2) == LUA_TSTRING) {
    const std::string_view name = string_at(lua, -2);
    for (const auto& field : fields) {
      if (field.name == name) return field.read(lua, verdict);
    }
  }
  return unknown_field(lua, fields);
}

template <class Verdict>
CallOutcome read_fields(lua_State* lua, const std::vector<Field<Verdict>>& fields) {
  Verdict verdict;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    Problem problem = read_field(lua, fields, verdict);
    if (!problem.empty()) return HookFailure{HookFault::invalid_result, std::move(problem)};
  }
  return verdict;
}

}  // namespace

CallOutcome read_verdict(lua_State* lua, HookKind hook) {
  if (lua_type(lua, -1) != LUA_TTABLE) {
    return HookFailure{HookFault::invalid_result, fmt::format("{} returned {}, expected a table",
                                                              hook_name(hook), described(lua, -1))};
  }
  // Scripts cannot make such tables: it is the message, or one of the library's.
  if (lua_getmetatable(lua, -1) != 0) {
    lua_pop(lua, 1);
    return HookFailure{HookFault::invalid_result,
                       fmt::format("{} returned a table that is not its own, such as its message",
                                   hook_name(hook))};
  }
  if (hook == HookKind::on_enqueue) return read_fields(lua, enqueue_fields());
  CallOutcome outcome = read_fields(lua, failure_fields());
  // A retry has no reason and a death no delay, even if the script named one.
  if (auto* verdict = std::get_if<FailureVerdict>(&outcome)) {
    if (verdict->retry) {
      verdict->reason.clear();
    } else {
      verdict->delay = Duration{};
    }
  }
  return outcome;
}

}  // namespace reprise::hooks
