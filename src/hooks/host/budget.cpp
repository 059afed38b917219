#include "hooks/host/budget.h"

#include <fmt/format.h>

#include <ctime>

#include "hooks/host/call_context.h"

namespace reprise::hooks {
namespace {

constexpr std::uint64_t kInstructionsPerMillisecond = 100'000;
// Lua asks back this often. An instruction can take long (a copy of all the memory there is), so
// the clock must be looked at often as well.
constexpr int kStep = 500;

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t nanoseconds(Duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

std::int64_t monotonic_nanoseconds() { return read_clock(CLOCK_MONOTONIC); }

Budget::Budget(Duration timeout)
    : timeout_nanoseconds_(nanoseconds(timeout)),
      limit_(static_cast<std::uint64_t>(timeout.count()) * kInstructionsPerMillisecond / 1000) {}

void Budget::begin(lua_State* lua, std::int64_t now_nanoseconds) {
  used_ = 0;
  next_look_ = kStep;
  // A little before the broker's own deadline: an error is cheaper than a new process.
  deadline_ = now_nanoseconds + timeout_nanoseconds_ - timeout_nanoseconds_ / 10;
  processor_time_at_start_ = 0;
  extended_ = false;
  stop_ = Stop::none;
  line_ = 0;
  lua_sethook(lua, on_count, LUA_MASKCOUNT, kStep);
}

void Budget::on_count(lua_State* lua, lua_Debug*) { context_of(lua).budget.charge(lua, kStep); }

void Budget::charge(lua_State* lua, std::uint64_t instructions) {
  if (stop_ != Stop::none) stop(lua, stop_);
  used_ += instructions;
  if (used_ < next_look_) return;
  if (used_ > limit_) stop(lua, Stop::instructions);
  next_look_ = used_ + kStep;
  if (time_is_up()) stop(lua, Stop::time);
}

bool Budget::time_is_up() {
  // Asking for processor time is a system call, which a short script should not have to pay for.
  if (processor_time_at_start_ == 0) {
    processor_time_at_start_ = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  }
  const std::int64_t now = monotonic_nanoseconds();
  if (now < deadline_) return false;
  if (extended_) return true;
  // A busy machine must not fail scripts: who had less than half of its time gets it again.
  extended_ = true;
  const std::int64_t had = read_clock(CLOCK_PROCESS_CPUTIME_ID) - processor_time_at_start_;
  if (had * 2 >= timeout_nanoseconds_) return true;
  deadline_ += timeout_nanoseconds_;
  return now >= deadline_;
}

void Budget::stop(lua_State* lua, Stop why) {
  if (stop_ == Stop::none) {
    stop_ = why;
    lua_Debug where;
    for (int level = 0; line_ == 0 && lua_getstack(lua, level, &where) != 0; ++level) {
      lua_getinfo(lua, "l", &where);
      if (where.currentline > 0) line_ = where.currentline;
    }
    lua_sethook(lua, on_count, LUA_MASKCOUNT, 1);
  }
  // Nothing that needs memory: there may be none.
  lua_pushnil(lua);
  lua_error(lua);
  __builtin_unreachable();
}

void Budget::pass_on(lua_State* lua) const {
  if (stop_ == Stop::none) return;
  lua_pushnil(lua);
  lua_error(lua);
}

std::string Budget::message() const {
  const std::string where = line_ > 0 ? fmt::format("line {}: ", line_) : std::string();
  if (stop_ == Stop::time) {
    return fmt::format("{}the time limit of {} ms was used up", where,
                       static_cast<double>(timeout_nanoseconds_) / 1e6);
  }
  return fmt::format("{}the limit of {} instructions was used up", where, limit_);
}

}  // namespace reprise::hooks
